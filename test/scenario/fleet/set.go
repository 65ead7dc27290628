package fleet

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Announce reads a member's announce; the error is that of the API.
func (f *Fleet) Announce(t testing.TB, id string) (*v1alpha1.MemberClusterAnnounce, error) {
	announce := &v1alpha1.MemberClusterAnnounce{}
	err := f.Leader.Get(t.Context(), types.NamespacedName{Namespace: f.Area, Name: identity.AnnounceName(id)}, announce)
	return announce, err
}

// ReadSet reads the ClusterSet in the Namespace of a controller.
func (c *Controller) ReadSet(t testing.TB) (*v1alpha2.ClusterSet, error) {
	set := &v1alpha2.ClusterSet{}
	err := c.Get(t.Context(), types.NamespacedName{Namespace: c.Namespace, Name: c.fleet.Name}, set)
	return set, err
}

// CheckStatus compares the status of a controller's ClusterSet with a text like
//
//	1/2 Ready=False/MembersNotReady; east Ready=True/Connected; west Ready=False/Disconnected
//
// which says ready and known clusters, the condition of the whole, and those of
// each cluster.
func (c *Controller) CheckStatus(t testing.TB, want string) error {
	set, err := c.ReadSet(t)
	if err != nil {
		return err
	}
	if got := outline(set.Status); got != want {
		return fmt.Errorf("the status is %q (%+v), want %q", got, set.Status.Conditions, want)
	}
	return nil
}

func outline(status v1alpha1.ClusterSetStatus) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d/%d", status.ReadyClusters, status.TotalClusters)
	for _, condition := range status.Conditions {
		fmt.Fprintf(&text, " %s=%s/%s", condition.Type, condition.Status, condition.Reason)
	}
	for _, cluster := range status.ClusterStatuses {
		fmt.Fprintf(&text, "; %s", cluster.ClusterID)
		for _, condition := range cluster.Conditions {
			fmt.Fprintf(&text, " %s=%s/%s", condition.Type, condition.Status, condition.Reason)
		}
	}
	return text.String()
}

// ChangeSet edits the ClusterSet of a member.
func (c *Controller) ChangeSet(t testing.TB, change func(*v1alpha2.ClusterSet)) {
	t.Helper()
	set := c.Set()
	c.Change(t, set, func() { change(set) })
}

// Restart ends the controller and starts it again, as an upgrade would.
func (c *Controller) Restart(t testing.TB) {
	t.Helper()
	c.Stop(t)
	c.Start(t)
}
