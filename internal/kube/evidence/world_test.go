package evidence_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

var clusters = labtest.Shared(labtest.Options{Clusters: []string{"leader", "east", "west"}})

func TestMain(m *testing.M) { os.Exit(clusters.Main(m)) }

const (
	area     = "antrea-multicluster"
	inMember = "kube-system"
	patience = 90 * time.Second
)

// place is one cluster as its administrator reaches it.
type place struct {
	client.Client
	name   string
	config *rest.Config
}

// world is a ClusterSet of upstream's controllers in real clusters, in which
// nothing runs: what is read is what the test wrote.
type world struct {
	leader, east, west *place
	tokens             map[string]string // by cluster ID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{leader: open(t, "leader"), east: open(t, "east"), west: open(t, "west"), tokens: map[string]string{}}
	log.SetLogger(logr.Discard()) // libraries log through one logger of the process
	w.leader.install(t, config.Leader)
	w.leader.put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: area}})
	w.leader.put(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: v1alpha1.MemberClusterRole}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"resourceexports"}, Verbs: []string{"create", "delete"}},
	}})
	w.leader.put(t, leaderSet())
	w.leader.deploy(t, area, "leader")
	for _, p := range []*place{w.leader, w.east, w.west} {
		p.put(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
	}
	for _, m := range []*place{w.east, w.west} {
		m.install(t, config.Member)
		w.bind(t, m.name+"-token", m.name)
		w.tokens[m.name] = w.token(t, m.name+"-token")
		w.announce(t, m.name)
		m.put(t, secretOf(w.tokens[m.name]))
		m.put(t, memberSet(m.name, "fleet", w.leader.config.Host))
		m.ready(t, "fleet")
		m.deploy(t, inMember, "member")
		m.pod(t, inMember, time.Now().Add(time.Hour))
	}
	return w
}

func open(t *testing.T, name string) *place {
	t.Helper()
	at := labtest.Cluster(t, clusters.Lab(t), name).RESTConfig()
	at.WarningHandler, at.QPS = rest.NoWarnings{}, -1
	return &place{clientOf(t, at), name, at}
}

func clientOf(t *testing.T, at *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(at, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *place) install(t *testing.T, role config.Role) {
	t.Helper()
	crds, err := config.CRDs(role)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		p.put(t, crd)
		p.await(t, "served: "+crd.GetName(), func() bool {
			var found apiextensionsv1.CustomResourceDefinition
			if p.Get(t.Context(), client.ObjectKeyFromObject(crd), &found) != nil {
				return false
			}
			for _, c := range found.Status.Conditions {
				if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
					return true
				}
			}
			return false
		})
	}
}

// put creates an object; one that an earlier test left is replaced.
func (p *place) put(t *testing.T, object client.Object) {
	t.Helper()
	p.await(t, fmt.Sprintf("%T %s is there", object, object.GetName()), func() bool {
		copied := object.DeepCopyObject().(client.Object)
		err := p.Create(context.Background(), copied)
		if apierrors.IsAlreadyExists(err) {
			switch object.(type) {
			case *corev1.Namespace, *corev1.ServiceAccount:
				return true
			}
			if object.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" {
				return true
			}
			p.tryRemove(copied)
			return false
		}
		return err == nil
	})
}

// remove deletes an object and waits until it is gone, whoever wants to hold it.
func (p *place) remove(t *testing.T, object client.Object) {
	p.await(t, fmt.Sprintf("%T %s is gone", object, object.GetName()), func() bool {
		return p.tryRemove(object)
	})
}

// tryRemove tells whether the object is gone, and else does something about it.
func (p *place) tryRemove(object client.Object) bool {
	ctx := context.Background() // a test may be over
	found := object.DeepCopyObject().(client.Object)
	err := p.Get(ctx, client.ObjectKeyFromObject(object), found)
	if apierrors.IsNotFound(err) {
		return true
	}
	if err == nil && len(found.GetFinalizers()) > 0 && found.GetObjectKind().GroupVersionKind().Kind != "CustomResourceDefinition" {
		found.SetFinalizers(nil)
		_ = p.Update(ctx, found)
	}
	_ = p.Delete(ctx, found, client.GracePeriodSeconds(0))
	return false
}

// change edits an object until the API server takes the edit.
func change[T client.Object](t *testing.T, p *place, object T, edit func(T)) {
	t.Helper()
	p.await(t, fmt.Sprintf("%T %s is changed", object, object.GetName()), func() bool {
		if p.Get(t.Context(), client.ObjectKeyFromObject(object), object) != nil {
			return false
		}
		edit(object)
		return p.Update(t.Context(), object) == nil
	})
}

func (p *place) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("cluster %q: %s: %v", p.name, what, err)
	}
}

// bind makes a credential for a cluster ID as "create membertoken" does.
func (w *world) bind(t *testing.T, name, id string) {
	t.Helper()
	w.leader.put(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: name, Annotations: map[string]string{v1alpha1.AnnotationClusterID: id}}})
	w.leader.put(t, grant(name, name))
}

func grant(name, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.MemberClusterRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: area, Name: account}},
	}
}

func (w *world) token(t *testing.T, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	w.leader.await(t, "a token of "+account, func() bool {
		return w.leader.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: account}}, request) == nil
	})
	return request.Status.Token
}

// announce beats ahead of time, so that a slow test is no silent member.
func (w *world) announce(t *testing.T, id string) {
	t.Helper()
	w.leader.put(t, announceOf(id, time.Now().Add(time.Hour)))
}

func announceOf(id string, touched time.Time) *v1alpha1.MemberClusterAnnounce {
	return &v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: area, Name: identity.AnnounceName(id), Finalizers: []string{v1alpha1.FinalizerAnnouncePrefix + id},
			Annotations: map[string]string{v1alpha1.AnnotationTouch: touched.Format(time.RFC3339)},
		},
		ClusterID: id, ClusterSetID: "fleet", LeaderClusterID: "tower",
	}
}

func leaderSet() *v1alpha2.ClusterSet {
	return &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "fleet"},
		Spec:       v1alpha2.ClusterSetSpec{ClusterID: "tower", Namespace: area, Leaders: []v1alpha2.LeaderCluster{{ClusterID: "tower"}}},
	}
}

func memberSet(id, name, server string) *v1alpha2.ClusterSet {
	return &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: inMember, Name: name},
		Spec: v1alpha2.ClusterSetSpec{ClusterID: id, Namespace: area, Leaders: []v1alpha2.LeaderCluster{
			{ClusterID: "tower", Server: server, Secret: "leader-token"},
		}},
	}
}

func secretOf(token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: inMember, Name: "leader-token"}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{v1alpha1.TokenSecretTokenKey: []byte(token + "\n")},
	}
}

// ready says what a member controller says of a leader that answers.
func (p *place) ready(t *testing.T, set string) {
	t.Helper()
	p.await(t, "the ClusterSet is ready", func() bool {
		var found v1alpha2.ClusterSet
		if p.Get(context.Background(), client.ObjectKey{Namespace: inMember, Name: set}, &found) != nil {
			return false
		}
		found.Status.Conditions = []v1alpha1.ClusterSetCondition{{Type: v1alpha1.ClusterSetReady, Status: corev1.ConditionTrue}}
		return p.Status().Update(context.Background(), &found) == nil
	})
}

var wireLabels = map[string]string{"app": "antrea", "component": "antrea-mc-controller"}

// deploy makes the Deployment of an upstream controller. It is paused: what its
// Pods are, the test says.
func (p *place) deploy(t *testing.T, namespace, role string, edits ...func(*appsv1.Deployment)) {
	t.Helper()
	one := int32(1)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "antrea-mc-controller"},
		Spec: appsv1.DeploymentSpec{
			Paused: true, Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: wireLabels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: wireLabels}, Spec: corev1.PodSpec{
				HostNetwork: true,
				Containers: []corev1.Container{{
					Name: "antrea-mc-controller", Image: "antrea/antrea-mc-controller:v2.7.0", Args: []string{role, "--config", "x"},
					Ports: []corev1.ContainerPort{{ContainerPort: 9443}},
				}},
			}},
		},
	}
	for _, edit := range edits {
		edit(d)
	}
	p.put(t, d)
}

// pod makes the one Pod of a controller, which started then.
func (p *place) pod(t *testing.T, namespace string, started time.Time) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "antrea-mc-controller-1", Labels: wireLabels},
		// On a Node of which no agent of the lab knows, so that what the test says stands.
		Spec: corev1.PodSpec{NodeName: "elsewhere", Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	p.remove(t, pod)
	p.put(t, pod)
	p.await(t, "the Pod runs", func() bool {
		if p.Get(context.Background(), client.ObjectKeyFromObject(pod), pod) != nil {
			return false
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}},
		}}
		return p.Status().Update(context.Background(), pod) == nil
	})
}

// clusters are the contexts leader, east and west, each with a fresh client.
func (w *world) clusters(t *testing.T) []evidence.Cluster {
	t.Helper()
	var all []evidence.Cluster
	for _, p := range []*place{w.leader, w.east, w.west} {
		all = append(all, evidence.Cluster{Context: p.name, Client: clientOf(t, p.config), Config: p.config})
	}
	return all
}

func (w *world) read(t *testing.T) evidence.Result {
	t.Helper()
	read, err := evidence.Read(t.Context(), w.clusters(t), evidence.Options{Limit: patience})
	if err != nil {
		t.Fatal(err)
	}
	return read
}
