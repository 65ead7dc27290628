package preflight

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Evidence is what was read of a ClusterSet: the leader and each member.
type Evidence struct {
	// CLI is the version of the upstream command line in use, if one is; an empty
	// version means that none is.
	CLI     rule.Read[string]
	Leader  Leader
	Members []Member
}

// Cluster is what is read of every cluster, in the role's own Namespace.
type Cluster struct {
	// Unreachable is why nothing at all could be read; empty when that went well.
	Unreachable string
	// UID of the kube-system Namespace: tells that two roles share one cluster.
	UID types.UID
	// Kubernetes is the version of the API server: "v1.34.1".
	Kubernetes rule.Read[string]
	// ClusterSets in the Namespace of the role.
	ClusterSets rule.Read[[]v1alpha2.ClusterSet]
	Legacy      rule.Read[Legacy]
	// Controllers are the Deployments of multi-cluster controllers of either role
	// in this cluster.
	Controllers rule.Read[[]Controller]
	// Nodes that can take Pods.
	Nodes rule.Read[int]
}

// Legacy is what versions before v1.13 left in a cluster.
type Legacy struct {
	// ClaimsServed: the CRD of ClusterClaim is there.
	ClaimsServed bool
	Claims       []v1alpha2.ClusterClaim
	// StoredVersions of the ClusterSet CRD.
	StoredVersions []string
	// SpecMembers tells that a ClusterSet read as v1alpha1 has spec.members.
	SpecMembers bool
}

// Leader is the leader cluster and its common area.
type Leader struct {
	Cluster
	// Namespace is the common area.
	Namespace string
	// Now by the leader's clock, when the rest was read.
	Now rule.Read[time.Time]

	Announces rule.Read[[]v1alpha1.MemberClusterAnnounce]
	Exports   rule.Read[[]v1alpha1.ResourceExport]
	Imports   rule.Read[[]v1alpha1.ResourceImport]
	// Slices are the EndpointSlices through which own peers exchange endpoints.
	Slices rule.Read[[]discoveryv1.EndpointSlice]

	Accounts rule.Read[[]admission.Account]
	// Grants are all bindings that let somebody write exports, or give the member
	// Role, or have the name of the credential that was once shared.
	Grants rule.Read[[]Grant]
	// Secrets are names of token Secrets in the common area.
	Secrets rule.Read[[]string]
	// Ranges of the leader's own Nodes and Pods.
	Ranges rule.Read[[]netip.Prefix]
	// Stretched: policies that reach across clusters are enabled.
	Stretched rule.Read[bool]
}

// Grant is a RoleBinding of the common area or a ClusterRoleBinding.
type Grant struct {
	Kind, Name string
	Version    string // resource version
	// MemberRole: it gives the Role of members.
	MemberRole bool
	// WritesExports: it allows to create, change or delete exports in the common area.
	WritesExports bool
	// Builtin bindings are made by Kubernetes for its own controllers.
	Builtin  bool
	Subjects []rbacv1.Subject
}

// Member is one member cluster.
type Member struct {
	Cluster
	// ID is what the cluster is called here: its cluster ID, as far as known.
	ID string
	// Credential is the token in the Secret that the ClusterSet names.
	Credential rule.Read[Credential]
	Settings   rule.Read[Settings]
	// Exported are all ServiceExports of the cluster.
	Exported rule.Read[[]Exported]
	// Imported are the Services and policies that importers made.
	Imported rule.Read[[]Imported]
	// Tiers are the names of the tiers a policy can be in.
	Tiers rule.Read[[]string]
	// GatewayNodes carry the gateway annotation.
	GatewayNodes rule.Read[[]GatewayNode]
	Gateways     rule.Read[[]v1alpha1.Gateway]
	// Labels are the normalized labels of running Pods.
	Labels rule.Read[[]string]
}

// Credential is what can be told of a member's token. The token is not kept.
type Credential struct {
	Secret string
	// Missing is why the Secret holds no token; empty when it holds one.
	Missing string
	// Namespace and Account of the subject claim; both empty when it has none.
	Namespace, Account string
	// Rejected is why the leader's API server refused the token; empty when it did not.
	Rejected string
	// Written is the last change of the Secret, Directed that of the ClusterSet's spec.
	Written, Directed time.Time
}

// Settings are those that have to agree in the whole set.
type Settings struct {
	Overlay        string // "geneve", "vxlan"; empty when there are no tunnels
	EndpointIPType v1alpha1.EndpointIPType
	Encryption     string // "none", "wireGuard"
	Stretched      bool
	// ServiceCIDR as it was configured; empty means: find out.
	ServiceCIDR string
}

// Exported is a ServiceExport and what should come of it.
type Exported struct {
	types.NamespacedName
	Valid bool // its condition Valid is True
	// Ports of the Service, and the addresses it should be reached at: its cluster
	// IP or those of its ready Pods, depending on the member.
	Ports     []corev1.ServicePort
	Addresses []string
}

// Imported is an object that an importer made.
type Imported struct {
	Kind string // Service, ClusterNetworkPolicy
	types.NamespacedName
	// ClusterSet that our own importers note on the object; upstream's note none.
	ClusterSet string
}

// GatewayNode is a Node with the gateway annotation.
type GatewayNode struct {
	Name  string
	Ready bool
	// GatewayIP and InternalIP as the controller would choose them.
	GatewayIP, InternalIP string
}
