package mc

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// joined makes a membership whose controller holds the ClusterSet with its
// finalizer, and beside it a Secret that the command line made for others.
func joined(t *testing.T, c client.Client) LeaveOptions {
	t.Helper()
	opts := eastJoins(t, c)
	if _, err := Join(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	var set v1alpha2.ClusterSet
	get(t, c, opts.Namespace, "fleet", &set)
	controllerutil.AddFinalizer(&set, v1alpha1.FinalizerLeave)
	if err := c.Update(t.Context(), &set); err != nil {
		t.Fatal(err)
	}
	create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: opts.Namespace, Name: "of-another-command",
		Annotations: map[string]string{v1alpha1.AnnotationCreatedByCLI: "true"}}})
	return LeaveOptions{Namespace: opts.Namespace, ClusterSet: "fleet", Wait: testTime}
}

// withdraws lets the member controller finish as soon as Leave waits.
func withdraws(t *testing.T, c client.Client, opts *LeaveOptions) {
	opts.Progress = func(string) {
		var set v1alpha2.ClusterSet
		get(t, c, opts.Namespace, "fleet", &set)
		if err := releaseSet(t.Context(), c, &set); err != nil {
			t.Error(err)
		}
	}
}

func TestWK_16_LeaveDeletesOnlyItsOwnToken(t *testing.T) {
	c, _ := cluster(t)
	opts := joined(t, c)
	withdraws(t, c, &opts)
	create(t, c, &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: opts.Namespace, Name: "cart"}})
	result, err := Leave(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"clusterset/fleet deleted", "secret/east-token deleted"}, lines(result.Touched))
	if result.Exports == 0 { // other tests have some, too
		t.Error("the ServiceExport that stays is not counted")
	}
	get(t, c, opts.Namespace, "of-another-command", &corev1.Secret{})

	again, err := Leave(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"clusterset/fleet not found"}, lines(again.Touched))
}

func TestWK_16_LeaveStopsWhenTheDeletionIsRefused(t *testing.T) {
	c, _ := cluster(t)
	opts := joined(t, c)
	refusing := interceptor.NewClient(c, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "clustersets"}, o.GetName(), errPlanted)
		},
	})
	_, err := Leave(t.Context(), refusing, opts)
	wantError(t, err, exit.Failed, `cannot leave ClusterSet "fleet"`, "ask an administrator")
	get(t, c, opts.Namespace, "east-token", &corev1.Secret{})
}

// covers: CLI-5.5
func TestLeaveKeepsATokenThatJoinDidNotMake(t *testing.T) {
	c, _ := cluster(t)
	opts := joined(t, c)
	withdraws(t, c, &opts)
	var secret corev1.Secret
	get(t, c, opts.Namespace, "east-token", &secret)
	secret.Annotations = nil
	if err := c.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	result, err := Leave(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"clusterset/fleet deleted", "secret/east-token kept"}, lines(result.Touched))
}

func TestLeaveThatTimesOutContinues(t *testing.T) {
	c, _ := cluster(t)
	opts := joined(t, c)
	opts.Wait = time.Second
	_, err := Leave(t.Context(), c, opts)
	wantError(t, err, exit.Waiting, "not gone after 1s", v1alpha1.FinalizerLeave, "--force")
	get(t, c, opts.Namespace, "east-token", &corev1.Secret{}) // the controller needs it to withdraw

	opts.Wait = testTime
	withdraws(t, c, &opts)
	if _, err := Leave(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	absent(t, c, opts.Namespace, "east-token", &corev1.Secret{})
}

func TestLeaveWithoutWaitingOnlyAsks(t *testing.T) {
	c, _ := cluster(t)
	opts := joined(t, c)
	opts.Wait = 0
	result, err := Leave(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"clusterset/fleet deleting"}, lines(result.Touched))
	get(t, c, opts.Namespace, "east-token", &corev1.Secret{})
}

func TestWK_8_ForcedLeaveSaysWhatIsLeft(t *testing.T) {
	c, _ := cluster(t)
	opts := joined(t, c)
	opts.Wait, opts.Force = time.Second, true
	create(t, c, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: opts.Namespace, Name: "antrea-mc-web", Labels: map[string]string{v1alpha1.LabelClusterSet: "fleet"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	result, err := Leave(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"clusterset/fleet deleted", "secret/east-token deleted"}, lines(result.Touched))
	same(t, []string{
		"1 imported Services are still in this cluster; remove them: kubectl delete services,serviceimports,endpointslices -A -l multicluster.lockstep.dev/clusterset=fleet",
		`leader "hub" still has the announce and the exports of cluster "east"; remove them there: kubectl --context LEADER -n common delete memberclusterannounce member-announce-from-east`,
	}, result.Left)
}

func TestLeaveRefusesTheLeadersClusterSet(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "leave")
	if _, err := Init(t.Context(), c, InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub"}); err != nil {
		t.Fatal(err)
	}
	_, err := Leave(t.Context(), c, LeaveOptions{Namespace: ns, ClusterSet: "fleet"})
	wantError(t, err, exit.Refused, "leader's own")
	get(t, c, ns, "fleet", &v1alpha2.ClusterSet{})
}

func TestWhatBecomesOfExportsIsSaid(t *testing.T) {
	for n, want := range map[int]string{1: "1 ServiceExport is still in this cluster. It shares nothing", 2: "2 ServiceExports are still in this cluster. They share nothing"} {
		if got := leftExports(n); !strings.HasPrefix(got, want) || !strings.Contains(got, "lockstep mc unexport NAME -n NAMESPACE") {
			t.Error(got)
		}
	}
}
