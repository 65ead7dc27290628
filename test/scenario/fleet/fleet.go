// Package fleet gives scenario tests a ClusterSet: real clusters of the lab, the
// leader and member controllers running in the test process, and short ways to
// say what a user would do.
//
// Periods are a tenth of the real ones, so that a test about thirty silent
// seconds takes three.
package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/role"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
)

// IntervalScale of all controllers in tests.
const IntervalScale = 0.1

// Deadline for anything a test waits for.
const Deadline = 60 * time.Second

// Fleet is one ClusterSet in one lab.
type Fleet struct {
	Name   string // of the ClusterSet
	Area   string // Namespace of the common area
	Lab    *lab.Lab
	Leader *Controller
}

// Cluster is an administrator's access to one cluster.
type Cluster struct {
	client.Client
	Name   string
	Config *rest.Config
	Lab    *lab.Cluster
}

// Controller is a controller that runs in the test process.
type Controller struct {
	*Cluster
	Namespace string
	ID        string // cluster ID, of a member
	fleet     *Fleet
	run       func(context.Context) error
	cancel    context.CancelFunc
	ended     chan error
}

// Open gives access to a cluster of the lab.
func Open(t testing.TB, l *lab.Lab, name string) *Cluster {
	t.Helper()
	c := labtest.Cluster(t, l, name)
	cfg := c.RESTConfig()
	cl, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatalf("client of cluster %q: %v", name, err)
	}
	return &Cluster{Client: cl, Name: name, Config: cfg, Lab: c}
}

// notInProcess are kinds of manifests for controllers in Pods: what runs in the
// test process is found by no Service.
var notInProcess = []string{"Deployment", "PodDisruptionBudget", "Service", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

// Install applies the manifests of a role, without the Deployment when the
// controller runs in the test process.
func (c *Cluster) Install(t testing.TB, r config.Role, options config.Options, skip ...string) {
	t.Helper()
	objects, err := config.Render(r, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if contains(skip, object.GetKind()) {
			continue
		}
		Eventually(t, fmt.Sprintf("%s %q is applied", object.GetKind(), object.GetName()), func() error {
			err := c.Create(t.Context(), object.DeepCopy())
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
		if object.GetKind() == "CustomResourceDefinition" {
			c.waitServed(t, object.GetName())
		}
	}
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

// New makes a ClusterSet whose leader runs in the cluster "leader" of the lab.
// The names are made from the given one, so several fleets can share a lab, one
// after the other.
func New(t testing.TB, l *lab.Lab, name string) *Fleet {
	t.Helper()
	f := Found(t, l, name)
	f.Leader.Start(t)
	return f
}

// Found is New without starting the leader controller.
func Found(t testing.TB, l *lab.Lab, name string, tune ...func(*leader.Options)) *Fleet {
	t.Helper()
	f := &Fleet{Name: name, Area: "area-" + name, Lab: l}
	f.Leader = f.leader(t, Open(t, l, "leader"), tune...)
	set := f.InstallLeader(t)
	t.Cleanup(func() { f.Leader.Discard(t, set) })
	return f
}

// Replica is another leader controller of the fleet. It is not started.
func (f *Fleet) Replica(t testing.TB, tune ...func(*leader.Options)) *Controller {
	t.Helper()
	return f.leader(t, f.Leader.Cluster, tune...)
}

func (f *Fleet) leader(t testing.TB, cluster *Cluster, tune ...func(*leader.Options)) *Controller {
	t.Helper()
	opts := leader.Options{Options: f.options(t, "leader", f.Area)}
	for _, change := range tune {
		change(&opts)
	}
	run := func(ctx context.Context) error { return leader.Run(ctx, as(cluster.Config, f.Area), opts) }
	return &Controller{Cluster: cluster, Namespace: f.Area, ID: "leader", fleet: f, run: run}
}

// InstallLeader makes what an administrator makes in the leader cluster: the
// manifests and the ClusterSet.
func (f *Fleet) InstallLeader(t testing.TB) *v1alpha2.ClusterSet {
	t.Helper()
	f.Leader.Install(t, config.Leader, config.Options{Namespace: f.Area}, notInProcess...)
	set := &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Area},
		Spec: v1alpha2.ClusterSetSpec{
			ClusterID: "leader", Namespace: f.Area,
			Leaders: []v1alpha2.LeaderCluster{{ClusterID: "leader"}},
		},
	}
	f.Leader.Make(t, set)
	return set
}

// Member makes a cluster of the lab a member, with its name as cluster ID, and
// starts its controller.
func (f *Fleet) Member(t testing.TB, name string, tune ...func(*member.Options)) *Controller {
	t.Helper()
	m := f.Candidate(t, name, name, tune...)
	m.Start(t)
	m.Join(t)
	return m
}

// Candidate prepares a member controller without starting or joining it.
func (f *Fleet) Candidate(t testing.TB, cluster, id string, tune ...func(*member.Options)) *Controller {
	t.Helper()
	c := Open(t, f.Lab, cluster)
	namespace := "member-" + f.Name
	c.Install(t, config.Member, config.Options{Namespace: namespace}, notInProcess...)
	opts := member.Options{Options: f.options(t, "member-"+id, namespace), AllowLoopback: true}
	for _, change := range tune {
		change(&opts)
	}
	m := &Controller{Cluster: c, Namespace: namespace, ID: id, fleet: f}
	m.run = func(ctx context.Context) error { return member.Run(ctx, as(c.Config, namespace), opts) }
	return m
}

// as is the access of a controller's own ServiceAccount, so that a right that is
// missing in the manifests is missing in tests as well.
func as(admin *rest.Config, namespace string) *rest.Config {
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + v1alpha1.ControllerServiceAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return config
}

func (f *Fleet) options(t testing.TB, name, namespace string) role.Options {
	t.Helper()
	return role.Options{Name: name, Namespace: namespace, IntervalScale: IntervalScale, MetricsAddress: "0", Registry: prometheus.NewRegistry(), Log: logger(t, f.Lab, name)}
}

// Libraries log through one logger of the process; tests have no use for it.
func init() { log.SetLogger(logr.Discard()) }

// Start runs the controller until the test ends or Stop is called.
func (c *Controller) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	c.cancel, c.ended = cancel, ended
	go func() { ended <- c.run(ctx) }()
	t.Cleanup(func() { c.Stop(t) })
}

// Stop ends the controller and waits for it; calling it again does nothing.
func (c *Controller) Stop(t testing.TB) {
	t.Helper()
	if c.cancel == nil {
		return
	}
	c.cancel()
	c.cancel = nil
	if err := <-c.ended; err != nil {
		t.Logf("controller of %s ended with %v", c.Name, err)
	}
}

// Join writes the Secret and the ClusterSet of a member, and waits until the
// leader has answered.
func (c *Controller) Join(t testing.TB) {
	t.Helper()
	c.Request(t)
	c.AwaitReady(t)
	t.Cleanup(func() { c.Leave(t) })
}

// Request writes the Secret and the ClusterSet of a member and waits for nothing.
func (c *Controller) Request(t testing.TB) *v1alpha2.ClusterSet {
	t.Helper()
	c.Put(t, c.fleet.Token(t, c.Cluster, c.Namespace, "leader-token", c.ID))
	set := c.Set()
	c.Make(t, set)
	return set
}

// Set is the ClusterSet of a member, as a user would write it.
func (c *Controller) Set() *v1alpha2.ClusterSet {
	return &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: c.fleet.Name, Namespace: c.Namespace},
		Spec: v1alpha2.ClusterSetSpec{
			ClusterID: c.ID, Namespace: c.fleet.Area,
			Leaders: []v1alpha2.LeaderCluster{{ClusterID: "leader", Server: c.fleet.Server(c.Cluster), Secret: "leader-token"}},
		},
	}
}

// Server is the leader's address for a cluster: through the relay between the
// two, so that the link can be cut.
func (f *Fleet) Server(from *Cluster) string {
	if from.Name == f.Leader.Name {
		return f.Leader.Config.Host
	}
	address, err := f.Leader.Lab.RelayAddress(from.Name)
	if err != nil {
		panic(err) // every pair of clusters of a lab has a relay
	}
	return address
}

// Token makes a credential for a member at the leader, and returns the Secret to
// put into the member. It keeps to what "lockstep mc create membertoken" makes.
func (f *Fleet) Token(t testing.TB, to *Cluster, namespace, name, id string) *corev1.Secret {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: "member-" + id, Namespace: f.Area, Annotations: map[string]string{v1alpha1.AnnotationClusterID: id},
	}}
	f.Leader.Put(t, account)
	f.Leader.Put(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name, Namespace: f.Area},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.MemberClusterRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.Area, Name: account.Name}},
	})
	request := &authenticationv1.TokenRequest{}
	Eventually(t, "a token for "+account.Name, func() error {
		return f.Leader.SubResource("token").Create(t.Context(), account, request)
	})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"ca.crt": f.Leader.Config.CAData, "token": []byte(request.Status.Token)},
	}
}

// AwaitReady waits until the member's ClusterSet says that the leader answered.
func (c *Controller) AwaitReady(t testing.TB) {
	t.Helper()
	Eventually(t, fmt.Sprintf("member %q is ready", c.ID), func() error {
		return c.CheckCondition(t, "True", "")
	})
}

// CheckCondition compares the overall condition of the member's ClusterSet.
func (c *Controller) CheckCondition(t testing.TB, status, reason string) error {
	t.Helper()
	set := &v1alpha2.ClusterSet{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: c.fleet.Name}, set); err != nil {
		return err
	}
	if len(set.Status.Conditions) == 0 {
		return fmt.Errorf("ClusterSet %q has no condition yet", set.Name)
	}
	if got := set.Status.Conditions[0]; string(got.Status) != status || got.Reason != reason {
		return fmt.Errorf("ClusterSet %q is Ready=%s, reason %q: %s; want %s, reason %q", set.Name, got.Status, got.Reason, got.Message, status, reason)
	}
	return nil
}

// Leave deletes the ClusterSet and waits until it is gone.
func (c *Controller) Leave(t testing.TB) {
	t.Helper()
	set := &v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: c.fleet.Name, Namespace: c.Namespace}}
	if c.cancel == nil { // nobody is there to withdraw: take the finalizer off
		c.Discard(t, set)
		return
	}
	ctx := context.Background() // t.Context() ends before cleanups run
	if err := c.Delete(ctx, set); apierrors.IsNotFound(err) {
		return
	} else if err != nil {
		t.Errorf("leave: %v", err)
	}
	deadline := time.Now().Add(Deadline)
	for time.Now().Before(deadline) {
		if apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(set), set)) {
			return
		}
		pause(ctx)
	}
	t.Errorf("member %q has not left", c.ID)
	c.Discard(t, set)
}
