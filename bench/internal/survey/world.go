package survey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

const (
	area           = "survey-area"
	clusterSet     = "survey"
	servicePrefix  = "svc-"
	importedPrefix = "antrea-mc-svc-"
	atOnce         = 32
)

func memberID(i int) string    { return fmt.Sprintf("member%02d", i) }
func serviceName(i int) string { return fmt.Sprintf("%s%03d", servicePrefix, i) }

// world is the ClusterSet that is looked at. No controller serves it.
type world struct {
	at               *stage.Cluster
	members, exports int
}

// make writes everything that the clusters of such a ClusterSet hold, with the
// plan of a real member where it decides.
func (w *world) make(ctx context.Context) error {
	if err := w.kinds(ctx); err != nil {
		return err
	}
	if err := w.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: area}}); err != nil {
		return err
	}
	if err := w.create(ctx, &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: clusterSet},
		Spec:       v1alpha2.ClusterSetSpec{ClusterID: "tower", Namespace: area, Leaders: []v1alpha2.LeaderCluster{{ClusterID: "tower"}}},
	}); err != nil {
		return err
	}
	for i := range w.members {
		if err := w.member(ctx, memberID(i)); err != nil {
			return fmt.Errorf("member %q: %w", memberID(i), err)
		}
	}
	return w.each(w.exports, func(i int) error {
		return w.create(ctx, &v1alpha1.ResourceImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: identity.ServiceImportName(types.NamespacedName{Namespace: shop, Name: serviceName(i)})},
			Spec:       v1alpha1.ResourceImportSpec{Kind: v1alpha1.KindServiceImport, Namespace: shop, Name: serviceName(i)},
		})
	})
}

// kinds makes the leader's API server serve what a member's does.
func (w *world) kinds(ctx context.Context) error {
	crds, err := config.CRDs(config.Member)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := w.at.Create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return w.at.List(ctx, &mcsv1beta1.ServiceExportList{}) == nil && w.at.List(ctx, &v1alpha1.GatewayList{}) == nil, nil
	})
}

func (w *world) member(ctx context.Context, id string) error {
	if err := w.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id}}); err != nil {
		return err
	}
	token, err := mc.CreateMemberToken(ctx, w.at, mc.MemberTokenOptions{Namespace: area, Name: id + "-token", ClusterID: id, Wait: time.Minute})
	if err != nil {
		return err
	}
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: "leader-token"}, Data: token.Secret.Data},
		&v1alpha2.ClusterSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: clusterSet},
			Spec: v1alpha2.ClusterSetSpec{ClusterID: id, Namespace: area, Leaders: []v1alpha2.LeaderCluster{
				{ClusterID: "tower", Server: w.at.Config.Host, Secret: "leader-token"},
			}},
		},
		&v1alpha1.MemberClusterAnnounce{
			// It beats an hour ahead, so that a slow machine makes no silent member.
			ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: identity.AnnounceName(id), Annotations: map[string]string{
				v1alpha1.AnnotationPeer: v1alpha1.PeerVersion, v1alpha1.AnnotationTouch: time.Now().Add(time.Hour).Format(time.RFC3339),
			}},
			ClusterID: id, ClusterSetID: clusterSet, LeaderClusterID: "tower",
		},
	}
	for _, object := range objects {
		if err := w.create(ctx, object); err != nil {
			return err
		}
	}
	return w.each(w.exports, func(i int) error { return w.export(ctx, id, serviceName(i)) })
}

// export makes a Service with one endpoint, its export here and in the common
// area, and what was imported of it.
func (w *world) export(ctx context.Context, id, name string) error {
	here := metav1.ObjectMeta{Namespace: id, Name: name}
	ports := []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}
	service := &corev1.Service{ObjectMeta: here, Spec: corev1.ServiceSpec{Ports: ports}}
	imported := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: "antrea-mc-" + name, Annotations: map[string]string{v1alpha1.AnnotationImportedService: "true"}},
		Spec:       corev1.ServiceSpec{Ports: ports},
	}
	ready, port, portName, tcp := true, int32(80), "http", corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: id, Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port, Protocol: &tcp}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.9.9.9"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}
	export := &mcsv1beta1.ServiceExport{ObjectMeta: here}
	for _, object := range []client.Object{service, imported, slice, export} {
		if err := w.create(ctx, object); err != nil {
			return err
		}
	}
	meta.SetStatusCondition(&export.Status.Conditions, metav1.Condition{Type: string(mcsv1beta1.ServiceExportConditionValid), Status: metav1.ConditionTrue, Reason: "Valid"})
	if err := w.at.Status().Update(ctx, export); err != nil {
		return err
	}
	tuple := types.NamespacedName{Namespace: shop, Name: name}
	plan := services.Export(services.ExportObserved{
		Cluster: id, Area: area, Exchange: clusterset.ExchangeSlices, Connected: true, Tuple: tuple,
		Export: export, Service: service, Slices: []discoveryv1.EndpointSlice{*slice},
	})
	if err := w.create(ctx, plan.Service.Desired); err != nil {
		return err
	}
	for _, change := range plan.Slices {
		if err := w.create(ctx, change.Desired); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) create(ctx context.Context, object client.Object) error {
	err := w.at.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("something is left of an earlier run: %w", err)
	}
	return err
}

func (w *world) each(n int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// remove deletes the Namespaces; exports hold a finalizer that no controller of
// this common area takes off.
func (w *world) remove(ctx context.Context) error {
	var exports v1alpha1.ResourceExportList
	err := w.at.List(ctx, &exports, client.InNamespace(area))
	err = errors.Join(err, w.each(len(exports.Items), func(i int) error {
		exports.Items[i].Finalizers = nil
		return w.at.Update(ctx, &exports.Items[i])
	}))
	for _, name := range append([]string{area}, w.names()...) {
		err = errors.Join(err, client.IgnoreNotFound(w.at.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	return err
}

func (w *world) names() (names []string) {
	for i := range w.members {
		names = append(names, memberID(i))
	}
	return names
}
