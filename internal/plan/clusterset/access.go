package clusterset

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Token is a credential; it prints as nothing worth stealing.
type Token string

func (Token) String() string   { return "[redacted]" }
func (Token) GoString() string { return "[redacted]" }

// MarshalText keeps it out of structured logs as well.
func (Token) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// Access is everything a member needs to reach a common area.
type Access struct {
	ClusterSet string // name of the ClusterSet, which is its ID
	ClusterID  string // of this cluster
	LeaderID   string // cluster ID of the leader
	Server     string // URL of the leader's API server
	CA         []byte // PEM
	Token      Token
	Namespace  string // of the common area, in the leader cluster
}

// Equal tells whether two accesses lead to the same place as the same cluster
// with the same credential. Anything else needs a new connection (WK-2).
func (a Access) Equal(b Access) bool {
	return a.ClusterSet == b.ClusterSet && a.ClusterID == b.ClusterID && a.LeaderID == b.LeaderID &&
		a.Server == b.Server && bytes.Equal(a.CA, b.CA) && a.Token == b.Token && a.Namespace == b.Namespace
}

// Problem is why something cannot go on, as it is shown in a condition.
type Problem struct {
	Reason  string // CamelCase
	Message string // one sentence: what stands in the way and what to do next
}

// Reasons of Problems and of the member's conditions.
const (
	// ReasonDisconnected is the wire's: the last heartbeat failed or is too old.
	ReasonDisconnected = "Disconnected"
	// ReasonUnauthorized: the leader's API server refused the credential.
	ReasonUnauthorized = "Unauthorized"
	// ReasonCredentialMissing: the token Secret or one of its keys is missing, or
	// holds something else.
	ReasonCredentialMissing = "CredentialMissing"
	// ReasonInvalid: the ClusterSet says something that cannot work.
	ReasonInvalid = "InvalidClusterSet"
	// ReasonLoopback: the leader's address would be this machine itself.
	ReasonLoopback = "LoopbackLeaderAddress"
	// ReasonIDInUse: another cluster of the set announces the same cluster ID.
	ReasonIDInUse = "ClusterIDInUse"
	// ReasonSecondClusterSet: another ClusterSet in the Namespace is older.
	ReasonSecondClusterSet = "SecondClusterSet"
	// ReasonWithdrawing: an earlier membership under this ID is still being undone.
	ReasonWithdrawing = "Withdrawing"
	// ReasonWaitingForLeader: announced, but the leader has not answered.
	ReasonWaitingForLeader = "WaitingForLeader"
	// ReasonLeaderRestored: the common area went back in time; withdrawals are held.
	ReasonLeaderRestored = "LeaderRestored"
	// ReasonLeaving: the ClusterSet is being deleted, the withdrawal goes on.
	ReasonLeaving = "Leaving"
)

// Serving picks the ClusterSet that counts: the oldest, then by name. Admission
// keeps it to one; without admission the rest is told so.
func Serving(sets []*v1alpha2.ClusterSet) (serving *v1alpha2.ClusterSet, surplus []*v1alpha2.ClusterSet) {
	if len(sets) == 0 {
		return nil, nil
	}
	sorted := slices.SortedFunc(slices.Values(sets), func(a, b *v1alpha2.ClusterSet) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return sorted[0], sorted[1:]
}

// ServingOf is Serving for a list as it was read.
func ServingOf(list v1alpha2.ClusterSetList) (serving *v1alpha2.ClusterSet, surplus []*v1alpha2.ClusterSet) {
	sets := make([]*v1alpha2.ClusterSet, len(list.Items))
	for i := range list.Items {
		sets[i] = &list.Items[i]
	}
	return Serving(sets)
}

// Memberships are the names of the ClusterSets that some Namespace of this cluster
// takes part in as a member, which the leader's own form does not say.
func Memberships(list v1alpha2.ClusterSetList) []string {
	var names []string
	for _, set := range list.Items {
		if len(set.Spec.Leaders) > 0 && set.Spec.Leaders[0].Server != "" {
			names = append(names, set.Name)
		}
	}
	return names
}

// ResolveID returns the cluster ID of a set: its own, else the one of the legacy
// claim "id.k8s.io" (API-LEG-2, API-LEG-3).
func ResolveID(set *v1alpha2.ClusterSet, claims []v1alpha2.ClusterClaim) (string, *Problem) {
	if set.Spec.ClusterID != "" {
		return set.Spec.ClusterID, nil
	}
	for _, claim := range claims {
		if claim.Name == v1alpha2.ClaimClusterID && claim.Value != "" {
			return claim.Value, nil
		}
	}
	return "", &Problem{ReasonInvalid, fmt.Sprintf("ClusterSet %q has no spec.clusterID and no ClusterClaim %q gives one; set spec.clusterID", set.Name, v1alpha2.ClaimClusterID)}
}

// MemberAccess reads the access out of a member's ClusterSet and its Secret.
func MemberAccess(set *v1alpha2.ClusterSet, clusterID string, secret *corev1.Secret, allowLoopback bool) (*Access, *Problem) {
	if len(set.Spec.Leaders) != 1 {
		return nil, &Problem{ReasonInvalid, fmt.Sprintf("ClusterSet %q lists %d leaders; exactly one is possible", set.Name, len(set.Spec.Leaders))}
	}
	if err := identity.ValidateCluster(clusterID); err != nil {
		return nil, &Problem{ReasonInvalid, err.Error()}
	}
	leader := set.Spec.Leaders[0]
	if problem := checkServer(leader.Server, allowLoopback); problem != nil {
		return nil, problem
	}
	if set.Spec.Namespace == "" {
		return nil, &Problem{ReasonInvalid, fmt.Sprintf("ClusterSet %q does not name the leader's Namespace; set spec.namespace", set.Name)}
	}
	if secret == nil {
		return nil, &Problem{ReasonCredentialMissing, fmt.Sprintf("Secret %q named by ClusterSet %q does not exist; apply the member token made by \"lockstep mc create membertoken\"", leader.Secret, set.Name)}
	}
	for _, key := range []string{v1alpha1.TokenSecretCAKey, v1alpha1.TokenSecretTokenKey} {
		if len(secret.Data[key]) == 0 {
			return nil, &Problem{ReasonCredentialMissing, fmt.Sprintf("Secret %q has no %q; apply the member token made by \"lockstep mc create membertoken\"", secret.Name, key)}
		}
	}
	token := Token(bytes.TrimSpace(secret.Data[v1alpha1.TokenSecretTokenKey]))
	if strings.ContainsFunc(string(token), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, &Problem{ReasonCredentialMissing, fmt.Sprintf("Secret %q has a %q that is no token; apply the member token made by \"lockstep mc create membertoken\"", secret.Name, v1alpha1.TokenSecretTokenKey)}
	}
	return &Access{
		ClusterSet: set.Name,
		ClusterID:  clusterID,
		LeaderID:   leader.ClusterID,
		Server:     leader.Server,
		CA:         secret.Data[v1alpha1.TokenSecretCAKey],
		Token:      token,
		Namespace:  set.Spec.Namespace,
	}, nil
}

func checkServer(server string, allowLoopback bool) *Problem {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return &Problem{ReasonInvalid, fmt.Sprintf("the leader's address %q is not an https URL; set spec.leaders[0].server to the leader's API server", server)}
	}
	if !allowLoopback && IsLoopback(server) {
		return &Problem{ReasonLoopback, fmt.Sprintf("the leader's address %q is a loopback address, which leads every member to itself; set spec.leaders[0].server to an address members can reach", server)}
	}
	return nil
}

// IsLoopback tells whether a server URL leads back to the machine that uses it.
// Names are not resolved, except the one every machine gives itself.
func IsLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		ip := net.ParseIP(host)
		return ip != nil && ip.IsLoopback()
	}
	return addr.Unmap().IsLoopback()
}
