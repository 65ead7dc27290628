package admission

import (
	"net/netip"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Account is a ServiceAccount of the common area, as far as it binds an identity.
type Account struct {
	Name string
	// Annotated tells whether it carries the annotation at all; BoundID is the
	// value, which may be empty.
	Annotated bool
	BoundID   string
}

// AccountOf reads the binding off the annotations of a ServiceAccount.
func AccountOf(name string, annotations map[string]string) Account {
	id, annotated := annotations[v1alpha1.AnnotationClusterID]
	return Account{Name: name, Annotated: annotated, BoundID: id}
}

// Caller is what was observed about the user of a request.
type Caller struct {
	// Account behind a caller that is a ServiceAccount of the common area, read
	// past every cache; known and nil when it does not exist. Other callers need
	// none.
	Account rule.Read[*Account]
	// HoldsMemberRole: a RoleBinding of the common area grants the member Role to
	// this user, ServiceAccount or one of its groups, wherever it lives.
	HoldsMemberRole rule.Read[bool]
}

// Area is where a controller answers, and how strictly.
type Area struct {
	// Namespace of the controller; on a leader this is the common area.
	Namespace string
	Policy    Policy
}

// Policy is what an administrator may choose. The zero value is the strict one.
type Policy struct {
	// Administrators are users and groups that may do what a member may not.
	Administrators []string
	// TrustUnbound lets credentials with the member Role and without a bound ID do
	// as they like with exports. It is for the days of a migration only.
	TrustUnbound bool
	// ExpiringTokens refuses members whose token never expires.
	ExpiringTokens bool
	// Reserved ranges may be claimed by no member: those of the leader cluster.
	Reserved []netip.Prefix
}

// DefaultAdministrators are the groups in which Kubernetes and kubeadm put the
// people who run a cluster.
func DefaultAdministrators() []string {
	return []string{"system:masters", "kubeadm:cluster-admins"}
}

func (a Area) administrator(user authenticationv1.UserInfo) bool {
	listed := func(name string) bool { return slices.Contains(a.Policy.Administrators, name) }
	return listed(user.Username) || slices.ContainsFunc(user.Groups, listed)
}

// leaderController tells the leader's own controller.
func (a Area) leaderController(user authenticationv1.UserInfo) bool {
	namespace, name, ok := account(user)
	return ok && namespace == a.Namespace && name == v1alpha1.ControllerServiceAccount
}

// inside tells callers that are ServiceAccounts of the common area.
func (a Area) inside(user authenticationv1.UserInfo) bool {
	namespace, _, ok := account(user)
	return ok && namespace == a.Namespace
}

// credentialID is where the API server puts the name of a token.
const credentialID = "authentication.kubernetes.io/credential-id"

// expires tells whether the caller's token ends by itself. Kubernetes names the
// credential of a token that was asked for (KEP-4193, since v1.30); one that lies
// in a Secret has no such name and never ends.
func expires(user authenticationv1.UserInfo) bool {
	return len(user.Extra[credentialID]) > 0
}

// bound is the ID of a caller that has one.
func (c Caller) bound() string {
	if account, ok := c.Account.Get(); ok && account != nil {
		return account.BoundID
	}
	return ""
}
