package admission_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

const (
	area = v1alpha1.DefaultLeaderNamespace
	set  = "fleet"
	// Who tries: a member, one that has not announced itself yet, one whose ID
	// continues that of another, and credentials that are bound to no ID.
	east, north, dashed = "east", "north", "west-2"
	unbound, elsewhere  = "a member's credential without a bound ID", "an account of another Namespace with the member Role"
	empty               = "a credential bound to an empty ID"
	deleted             = "a token whose account was deleted"
	administrator       = "an administrator"
)

// serviceProxyName keeps proxies of the leader cluster away from a slice.
const serviceProxyName = "service.kubernetes.io/service-proxy-name"

// arena is a leader whose controllers run in Pods, with member west, whose objects
// the others are after.
type arena struct {
	*fleet.Fleet
	clients map[string]client.Client
}

func newArena(t *testing.T, env ...string) *arena {
	t.Helper()
	binary, err := fleet.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, labtest.Options{Images: map[string][]string{"lockstep": {binary}}, Env: env})
	a := &arena{Fleet: fleet.Deploy(t, l, set, func(_ config.Role, o *config.Options) { o.Admission = true }), clients: map[string]client.Client{}}
	a.clients[administrator] = a.Leader.Client
	for _, id := range []string{east, "west", north} {
		a.clients[id] = a.member(t, id)
	}
	return a
}

// member is a client with a member's own token.
func (a *arena) member(t *testing.T, id string) client.Client {
	t.Helper()
	return a.with(t, string(a.Token(t, a.Leader.Cluster, area, "unused", id).Data["token"]))
}

func (a *arena) with(t *testing.T, token string) client.Client {
	t.Helper()
	c, err := client.New(a.access(token), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (a *arena) access(token string) *rest.Config {
	return &rest.Config{
		Host: a.Leader.Config.Host, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.Leader.Config.CAData},
	}
}

// account is a client of a new account with the member Role.
func (a *arena) account(t *testing.T, namespace, name string, annotations map[string]string) client.Client {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}}
	a.Leader.Put(t, account)
	a.Leader.Put(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name, Namespace: area},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.MemberClusterRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	})
	request := &authenticationv1.TokenRequest{}
	fleet.Eventually(t, "a token for "+name, func() error {
		return a.Leader.SubResource("token").Create(t.Context(), account, request)
	})
	return a.with(t, request.Status.Token)
}

// strangers makes the credentials that are bound to no cluster.
func (a *arena) strangers(t *testing.T) {
	t.Helper()
	a.Leader.Put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tools"}})
	a.clients[dashed] = a.member(t, dashed) // not before west has announced itself: it could not any more
	a.clients[unbound] = a.account(t, area, "antrea-mc-member-access-sa", nil)
	a.clients[elsewhere] = a.account(t, "tools", "deployer", map[string]string{v1alpha1.AnnotationClusterID: "west"})
	a.clients[empty] = a.account(t, area, "empty", map[string]string{v1alpha1.AnnotationClusterID: ""})
	a.clients[deleted] = a.account(t, area, "gone", map[string]string{v1alpha1.AnnotationClusterID: "west"})
	if err := a.Leader.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "gone"}}); err != nil {
		t.Fatal(err)
	}
}

// settle writes what members have in the common area.
func (a *arena) settle(t *testing.T, ids ...string) {
	t.Helper()
	for i, id := range ids {
		c := a.clients[id]
		objects := []client.Object{
			announce(id), serviceExport(id, "cart"), endpointsExport(id, "cart"), labels(id), slice(id, "cart"), network(id, i+20), lease(id),
		}
		for _, object := range objects {
			// Until the leader's replicas serve, and its role binding is known.
			fleet.Eventually(t, fmt.Sprintf("%s writes %T", id, object), func() error { return c.Create(t.Context(), object) })
		}
		fleet.Eventually(t, "the leader answers "+id, func() error {
			found := &v1alpha1.MemberClusterAnnounce{}
			if err := a.Leader.Get(t.Context(), client.ObjectKeyFromObject(announce(id)), found); err != nil {
				return err
			}
			if len(found.Finalizers) == 0 {
				return fmt.Errorf("no finalizer yet")
			}
			return nil
		})
	}
	fleet.Eventually(t, "the Services are merged", func() error {
		return a.Leader.Get(t.Context(), types.NamespacedName{Namespace: area, Name: "shop-cart-service"}, &v1alpha1.ResourceImport{})
	})
}

func announce(id string) *v1alpha1.MemberClusterAnnounce {
	return &v1alpha1.MemberClusterAnnounce{
		// Of a peer, whose slices are its own to write.
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: identity.AnnounceName(id), Annotations: map[string]string{v1alpha1.AnnotationPeer: v1alpha1.PeerVersion}},
		ClusterID:  id, ClusterSetID: set, LeaderClusterID: "leader",
	}
}

func export(id, kind, name string) *v1alpha1.ResourceExport {
	return &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Finalizers: []string{v1alpha1.FinalizerExport}, Labels: map[string]string{
			v1alpha1.LabelSourceClusterID: id, v1alpha1.LabelSourceKind: kind,
			v1alpha1.LabelSourceNamespace: "shop", v1alpha1.LabelSourceName: name,
		}},
		Spec: v1alpha1.ResourceExportSpec{ClusterID: id, Kind: kind, Namespace: "shop", Name: name},
	}
}

func serviceExport(id, name string) *v1alpha1.ResourceExport {
	e := export(id, v1alpha1.KindService, name)
	e.Name = identity.ServiceExportName(id, types.NamespacedName{Namespace: "shop", Name: name})
	e.Spec.Service = &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}}}
	return e
}

func endpointsExport(id, name string) *v1alpha1.ResourceExport {
	e := export(id, v1alpha1.KindEndpoints, name)
	e.Name = identity.EndpointsExportName(id, types.NamespacedName{Namespace: "shop", Name: name})
	e.Spec.Endpoints = &v1alpha1.EndpointsExport{Subsets: []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: "10.96.7.7"}}, Ports: []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
	}}}
	return e
}

func network(id string, octet int) *v1alpha1.ResourceExport {
	e := export(id, v1alpha1.KindClusterInfo, id)
	e.Name, e.Spec.Namespace = identity.ClusterInfoName(id), "kube-system"
	delete(e.Labels, v1alpha1.LabelSourceNamespace)
	delete(e.Labels, v1alpha1.LabelSourceName)
	e.Spec.ClusterInfo = &v1alpha1.ClusterInfo{
		ClusterID: id, ServiceCIDR: fmt.Sprintf("10.%d.0.0/16", octet), PodCIDRs: []string{fmt.Sprintf("10.%d.0.0/16", octet+100)},
		GatewayInfos: []v1alpha1.GatewayInfo{{GatewayIP: fmt.Sprintf("192.0.2.%d", octet)}},
	}
	return e
}

func labels(id string) *v1alpha1.ResourceExport {
	const normalized = "ns:kubernetes.io/metadata.name=shop&pod:app=cart"
	e := export(id, v1alpha1.KindLabelIdentity, "")
	e.Name, e.Finalizers = identity.LabelIdentityExportName(id, normalized), nil
	e.Spec.Namespace = ""
	delete(e.Labels, v1alpha1.LabelSourceNamespace)
	delete(e.Labels, v1alpha1.LabelSourceName)
	e.Spec.LabelIdentity = &v1alpha1.LabelIdentityExport{NormalizedLabel: normalized}
	return e
}

func slice(id, name string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: area, Name: identity.SliceName(id, types.NamespacedName{Namespace: "shop", Name: name}, 0),
			Labels: map[string]string{
				discoveryv1.LabelManagedBy: v1alpha1.SliceManager, serviceProxyName: v1alpha1.SliceManager,
				mcsv1beta1.LabelSourceCluster: id, mcsv1beta1.LabelServiceName: name, v1alpha1.LabelServiceNamespace: "shop",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.96.7.7"}}},
	}
}

// lease is the sign of life of a member of ours.
func lease(id string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: identity.LeaseName(id)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(id), LeaseDurationSeconds: ptr.To(int32(9))},
	}
}

// within bounds a single request.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 30*time.Second)
}
