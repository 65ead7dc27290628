// Package selection decides which keys of a primary's etcd travel to its
// standby: each key is mirrored, or local to the side it is on.
//
// The rules are data, looked at in one fixed order; the first that speaks
// decides, and says why:
//
//	outside        not below the prefix of Kubernetes                  local
//	(never rows)   keys whose copy breaks the standby, whoever asks    local
//	ignore-equal   exact keys an administrator keeps local             local
//	sync-equal     exact keys an administrator wants mirrored          mirrored
//	global         objects of the management cluster itself            local
//	capi           ranges of Cluster API and of machine inventories    mirrored
//	cluster-object what a workload cluster's label marks as its own    mirrored
//	(local rows)   what belongs to local processes and controllers     local
//	namespace      objects of the platform's own namespaces            local
//	otherwise                                                          mirrored
//
// Most keys are decided by their text. Some need the labels of the object
// (Facts); a verdict says so where it could have been another one.
package selection
