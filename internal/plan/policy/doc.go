// Package policy decides how a ClusterNetworkPolicy that an administrator puts
// into the common area comes to the members: the leader makes an import of the
// exports, a member makes a policy of the import.
//
// The content is carried and never understood. Policies are foreign objects here,
// as unstructured values: what is not ours to know must come out as it went in.
package policy
