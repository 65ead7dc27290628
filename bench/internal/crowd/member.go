// Package crowd plays members of a ClusterSet: each has a token of its own, beats,
// exports what the plan of a real member would publish, and listens as a real
// importer does. There is no cluster behind it.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/bench/internal/ear"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Member is one cluster that is played.
type Member struct {
	clusterset.Access
	client client.Client
	config *rest.Config
}

// Join makes a member with a token of its own. It is none of the ClusterSet
// before it beats.
func Join(ctx context.Context, s *stage.Stage, id string) (*Member, error) {
	token, err := mc.CreateMemberToken(ctx, s.Leader, mc.MemberTokenOptions{
		Namespace: stage.Area, Name: id + "-token", ClusterID: id, Wait: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	m := &Member{Access: clusterset.Access{
		ClusterSet: stage.ClusterSet, ClusterID: id, LeaderID: stage.LeaderID, Server: s.Leader.Config.Host, Namespace: stage.Area,
		CA:    token.Secret.Data[v1alpha1.TokenSecretCAKey],
		Token: clusterset.Token(token.Secret.Data[v1alpha1.TokenSecretTokenKey]),
	}}
	m.config = &rest.Config{
		Host: m.Server, BearerToken: string(m.Token), TLSClientConfig: rest.TLSClientConfig{CAData: m.CA},
		UserAgent: "lockstep-bench", QPS: -1,
		// With a dialler of its own a member shares its connection with no other.
		Dial: (&net.Dialer{}).DialContext,
	}
	m.client, err = client.New(m.config, client.Options{Scheme: scheme.New(), Mapper: scheme.AreaMapper()})
	return m, err
}

// Beat writes the announce as a real member does, and tells whether the leader
// has answered.
func (m *Member) Beat(ctx context.Context) (answered bool, err error) {
	var list v1alpha1.MemberClusterAnnounceList
	name := identity.AnnounceName(m.ClusterID)
	if err := m.client.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingFields{"metadata.name": name}); err != nil {
		return false, err
	}
	observed := clusterset.AnnounceObserved{Access: m.Access, ClusterUID: "played-" + m.ClusterID, Now: time.Now()}
	if len(list.Items) > 0 {
		observed.Announce = &list.Items[0]
	}
	next, problem := clusterset.PlanAnnounce(observed)
	switch {
	case problem != nil:
		return false, errors.New(problem.Message)
	case observed.Announce == nil:
		return false, m.client.Create(ctx, next)
	}
	err = m.client.Update(ctx, next)
	if apierrors.IsConflict(err) { // with the leader's answer
		err = nil
	}
	return clusterset.ReadAnswer(observed.Announce).Seen, err
}

// Live beats every ten seconds until ctx ends, the first time after a while.
func (m *Member) Live(ctx context.Context, first time.Duration) error {
	for wait := first; ; wait = clusterset.HeartbeatEvery {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if _, err := m.Beat(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("member %q: %w", m.ClusterID, err)
		}
	}
}

// Export publishes a Service with a number of endpoints, as a member whose
// exporter publishes Pods.
func (m *Member) Export(ctx context.Context, tuple types.NamespacedName, endpoints int) error {
	plan := services.Export(m.exported(tuple, endpoints))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.client.Create(ctx, plan.Service.Desired) })
	for _, slice := range plan.Slices {
		group.Go(func() error { return m.client.Create(ctx, slice.Desired) })
	}
	return group.Wait()
}

// exported is what a cluster with that Service would observe.
func (m *Member) exported(tuple types.NamespacedName, endpoints int) services.ExportObserved {
	meta := metav1.ObjectMeta{Namespace: tuple.Namespace, Name: tuple.Name, UID: types.UID(m.ClusterID + "/" + tuple.String()), CreationTimestamp: metav1.Now()}
	slice := discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(80)), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for i := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
		})
	}
	return services.ExportObserved{
		Cluster: m.ClusterID, Area: m.Namespace, Mode: v1alpha1.EndpointIPTypePodIP, Exchange: clusterset.ExchangeSlices, Connected: true,
		Tuple: tuple, Export: &mcsv1beta1.ServiceExport{ObjectMeta: meta},
		Service: &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
		}},
		Slices: []discoveryv1.EndpointSlice{slice},
	}
}

// Withdraw takes back all that this member exports.
func (m *Member) Withdraw(ctx context.Context) error {
	mine := client.MatchingLabels{mcsv1beta1.LabelSourceCluster: m.ClusterID}
	var slices discoveryv1.EndpointSliceList
	var exports v1alpha1.ResourceExportList
	if err := m.client.List(ctx, &slices, client.InNamespace(m.Namespace), mine); err != nil {
		return err
	}
	if err := m.client.List(ctx, &exports, client.InNamespace(m.Namespace), client.MatchingLabels{v1alpha1.LabelSourceClusterID: m.ClusterID}); err != nil {
		return err
	}
	for i := range slices.Items {
		if err := client.IgnoreNotFound(m.client.Delete(ctx, &slices.Items[i])); err != nil {
			return err
		}
	}
	for i := range exports.Items {
		if err := client.IgnoreNotFound(m.client.Delete(ctx, &exports.Items[i])); err != nil {
			return err
		}
	}
	return nil
}

// Listen opens the watches that a real member holds.
func (m *Member) Listen(ctx context.Context) (*ear.Ears, error) {
	clients, err := kubernetes.NewForConfig(m.config)
	if err != nil {
		return nil, err
	}
	wire := "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/" + m.Namespace + "/"
	return ear.Open(ctx, clients.DiscoveryV1().RESTClient(),
		ear.Watch{Path: wire + "resourceexports", Encoding: ear.JSON, Label: v1alpha1.LabelSourceClusterID + "=" + m.ClusterID},
		ear.Watch{Path: wire + "resourceimports", Encoding: ear.JSON},
		ear.Watch{Path: wire + "memberclusterannounces", Encoding: ear.JSON, Field: "metadata.name=" + identity.AnnounceName(m.ClusterID)},
		ear.Watch{Path: "/apis/discovery.k8s.io/v1/namespaces/" + m.Namespace + "/endpointslices", Encoding: ear.Protobuf},
	)
}

// Leave deletes the member's announce, which takes back the rest, and its
// credential.
func (m *Member) Leave(ctx context.Context, leader *stage.Cluster) error {
	announce := &v1alpha1.MemberClusterAnnounce{ObjectMeta: metav1.ObjectMeta{Name: identity.AnnounceName(m.ClusterID), Namespace: m.Namespace}}
	err := client.IgnoreNotFound(m.client.Delete(ctx, announce))
	token := metav1.ObjectMeta{Name: m.ClusterID + "-token", Namespace: m.Namespace}
	return errors.Join(err, client.IgnoreNotFound(leader.Delete(ctx, &corev1.Secret{ObjectMeta: token})),
		client.IgnoreNotFound(leader.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: token})),
		client.IgnoreNotFound(leader.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: token})))
}
