package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

const (
	clusterSet = "demo-set"
	namespace  = "shop"
	patience   = 60 * time.Second
)

// share is the chapter about one Service.
func share() []step {
	return []step{
		{"Start three real control planes: leader, east, west", func(ctx context.Context, t *tour) error {
			begun := time.Now()
			if err := t.startClusters(ctx); err != nil {
				return err
			}
			t.say("etcd, kube-apiserver and kube-controller-manager of 3 clusters are ready after %.1f s", time.Since(begun).Seconds())
			return nil
		}},
		{"Install the controllers: CRDs, RBAC, Deployments", installRoles},
		{"Create the ClusterSet and one credential per member, and join", joinAll},
		{"Export Service shop/cart from east", exportFromEast},
		{"Export the same Service from west: both clusters serve it", exportFromWest},
		{"Export it from leader with another port 'http': a conflict, shown to everybody", conflict},
		{"Kill the leader controller (SIGKILL) while Service shop/pay is being exported", killLeader},
		{"Take the exports back", unexport},
		{"The ClusterSet on one page: lockstep mc status", status},
	}
}

func installRoles(ctx context.Context, t *tour) error {
	put := func(ctx context.Context, c cluster, role config.Role) error {
		objects, err := config.Render(role, config.Options{})
		if err != nil {
			return err
		}
		_, err = install.Apply(ctx, c.WithWatch, objects, install.Options{AvailableWithin: 2 * time.Minute})
		return err
	}
	if err := put(ctx, t.clients["leader"], config.Leader); err != nil {
		return err
	}
	t.say("leader: the leader controller runs in Namespace %s, 2 replicas, 1 active", v1alpha1.DefaultLeaderNamespace)
	err := t.each(ctx, func(ctx context.Context, _ string, c cluster) error { return put(ctx, c, config.Member) })
	if err != nil {
		return err
	}
	t.say("leader, east, west: the member controller runs in Namespace %s, 2 replicas, 1 active", v1alpha1.DefaultMemberNamespace)
	return nil
}

func joinAll(ctx context.Context, t *tour) error {
	leader := t.clients["leader"]
	if _, err := mc.Init(ctx, leader, mc.InitOptions{
		Namespace: v1alpha1.DefaultLeaderNamespace, ClusterSet: clusterSet, ClusterID: "leader", Wait: patience,
	}); err != nil {
		return err
	}
	t.say("lockstep mc init -n %s --clusterset %s --clusterid leader", v1alpha1.DefaultLeaderNamespace, clusterSet)
	for _, name := range clusterNames {
		token, err := mc.CreateMemberToken(ctx, leader, mc.MemberTokenOptions{
			Namespace: v1alpha1.DefaultLeaderNamespace, Name: name + "-token", ClusterID: name,
		})
		if err != nil {
			return err
		}
		server, err := t.leaderAddress(name)
		if err != nil {
			return err
		}
		begun := time.Now()
		if _, err = mc.Join(ctx, t.clients[name], mc.JoinOptions{
			Namespace: v1alpha1.DefaultMemberNamespace, ClusterSet: clusterSet, ClusterID: name,
			LeaderClusterID: "leader", LeaderNamespace: v1alpha1.DefaultLeaderNamespace, LeaderAPIServer: server,
			AllowLoopback: true, Token: token.Secret, Wait: patience,
		}); err != nil {
			return err
		}
		t.say("lockstep mc create membertoken, lockstep mc join: %s has joined, the leader answered after %d ms", name, time.Since(begun).Milliseconds())
	}
	return nil
}

// leaderAddress is where a cluster reaches the leader: through the link of the
// lab that can be cut, except from the leader's own cluster.
func (t *tour) leaderAddress(from string) (string, error) {
	if from == "leader" {
		return t.clients["leader"].config.Host, nil
	}
	return t.clients["leader"].lab.RelayAddress(from)
}

func exportFromEast(ctx context.Context, t *tour) error {
	err := t.each(ctx, func(ctx context.Context, _ string, c cluster) error {
		return c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	})
	if err != nil {
		return err
	}
	east, west := t.clients["east"], t.clients["west"]
	if err := east.serve(ctx, "cart", 80, 2); err != nil {
		return err
	}
	if err := east.export(ctx, "cart"); err != nil {
		return err
	}
	took, err := until(ctx, "the import in west", patience, func(ctx context.Context) error { return west.imports(ctx, "cart", "east") })
	if err != nil {
		return err
	}
	t.say("ServiceImport, its IP and its endpoints are in west after %d ms", took.Milliseconds())
	return t.showImport(ctx, "west", "cart")
}

func exportFromWest(ctx context.Context, t *tour) error {
	west := t.clients["west"]
	before, err := west.importIP(ctx, "cart")
	if err != nil {
		return err
	}
	if err := west.serve(ctx, "cart", 80, 3); err != nil {
		return err
	}
	if err := west.export(ctx, "cart"); err != nil {
		return err
	}
	took, err := until(ctx, "both clusters in the import of leader", patience, func(ctx context.Context) error {
		return t.clients["leader"].imports(ctx, "cart", "east", "west")
	})
	if err != nil {
		return err
	}
	t.say("merged and imported into leader after %d ms", took.Milliseconds())
	if _, err := until(ctx, "both clusters in the import of west", patience, func(ctx context.Context) error {
		return west.imports(ctx, "cart", "east", "west")
	}); err != nil {
		return err
	}
	after, err := west.importIP(ctx, "cart")
	if err != nil {
		return err
	}
	if before != after {
		return fmt.Errorf("the IP of the import in west changed from %s to %s", before, after)
	}
	t.say("west keeps the import's IP, and serves it from its own Pods as well:")
	return t.showImport(ctx, "west", "cart")
}

func conflict(ctx context.Context, t *tour) error {
	leader := t.clients["leader"]
	if err := leader.serve(ctx, "cart", 8080, 1); err != nil {
		return err
	}
	if err := leader.export(ctx, "cart"); err != nil {
		return err
	}
	for _, name := range clusterNames {
		var found metav1.Condition
		if _, err := until(ctx, "the conflict on the export in "+name, patience, func(ctx context.Context) (err error) {
			found, err = t.clients[name].condition(ctx, "cart", mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue)
			return err
		}); err != nil {
			return err
		}
		t.say("%s: Conflict=%s, %s: %s", name, found.Status, found.Reason, found.Message)
	}
	if err := leader.unexport(ctx, "cart"); err != nil {
		return err
	}
	took, err := until(ctx, "the end of the conflict", patience, func(ctx context.Context) error {
		_, err := t.clients["east"].condition(ctx, "cart", mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionFalse)
		return err
	})
	if err != nil {
		return err
	}
	t.say("leader takes its export back: no conflict any more after %d ms", took.Milliseconds())
	return nil
}

func killLeader(ctx context.Context, t *tour) error {
	east, west, leader := t.clients["east"], t.clients["west"], t.clients["leader"]
	if err := east.serve(ctx, "pay", 443, 2); err != nil {
		return err
	}
	pod, err := leader.activeReplica(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := leader.lab.Kill(ctx, v1alpha1.DefaultLeaderNamespace+"/"+pod); err != nil {
		return err
	}
	if err := east.export(ctx, "pay"); err != nil {
		return err
	}
	t.say("killed the process of Pod %s, the active replica", pod)
	if _, err := until(ctx, "the import in west", patience, func(ctx context.Context) error { return west.imports(ctx, "pay", "east") }); err != nil {
		return err
	}
	took := time.Since(begun)
	if err := west.imports(ctx, "cart", "east", "west"); err != nil {
		return err
	}
	t.say("shop/pay is in west %.1f s after the kill; shop/cart is still there", took.Seconds())
	return nil
}

func unexport(ctx context.Context, t *tour) error {
	for _, name := range []string{"east", "west"} {
		if err := t.clients[name].unexport(ctx, "cart"); err != nil {
			return err
		}
	}
	for _, name := range clusterNames {
		took, err := until(ctx, "the end of the import in "+name, patience, func(ctx context.Context) error {
			return t.clients[name].lacks(ctx, "cart")
		})
		if err != nil {
			return err
		}
		t.say("%s: ServiceImport, Service and endpoints of shop/cart are gone after %d ms", name, took.Milliseconds())
	}
	return nil
}

func status(ctx context.Context, t *tour) error {
	text, err := t.status(ctx)
	t.say("%s", strings.TrimRight(text, "\n"))
	return err
}

// activeReplica is the Pod that holds the leader controller's lease.
func (c cluster) activeReplica(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: v1alpha1.DefaultLeaderNamespace, Name: "lockstep-leader"}, lease); err != nil {
		return "", err
	}
	pod, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	if pod == "" {
		return "", fmt.Errorf("no replica of the leader controller is active")
	}
	return pod, nil
}

// serve makes a Deployment and a Service for it, and waits for its endpoints.
func (c cluster) serve(ctx context.Context, name string, port int32, replicas int32) error {
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/" + name}}},
			},
		},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: port}}},
	}
	for _, object := range []client.Object{deployment, service} {
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	_, err := until(ctx, "endpoints of "+name, patience, func(ctx context.Context) error {
		var list discoveryv1.EndpointSliceList
		if err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name}); err != nil {
			return err
		}
		if n := ready(list.Items); n != int(replicas) {
			return fmt.Errorf("%d of %d endpoints are ready", n, replicas)
		}
		return nil
	})
	return err
}

func ready(list []discoveryv1.EndpointSlice) (n int) {
	for _, slice := range list {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				n++
			}
		}
	}
	return n
}

func (c cluster) export(ctx context.Context, name string) error {
	return c.Create(ctx, &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}})
}

func (c cluster) unexport(ctx context.Context, name string) error {
	return c.Delete(ctx, &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}})
}

// imports complains until the import is complete: an IP, and ready endpoints of
// exactly these clusters.
func (c cluster) imports(ctx context.Context, name string, want ...string) error {
	if _, err := c.importIP(ctx, name); err != nil {
		return err
	}
	slicesOf, err := c.slices(ctx, name)
	if err != nil {
		return err
	}
	var from []string
	for source, list := range slicesOf {
		if ready(list) > 0 {
			from = append(from, source)
		}
	}
	if slices.Sort(from); !slices.Equal(from, want) {
		return fmt.Errorf("ready endpoints come from %q, not from %q", from, want)
	}
	return nil
}

func (c cluster) importIP(ctx context.Context, name string) (string, error) {
	imported := &mcsv1beta1.ServiceImport{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, imported); err != nil {
		return "", err
	}
	if len(imported.Spec.IPs) == 0 {
		return "", fmt.Errorf("ServiceImport %q has no IP yet", name)
	}
	return imported.Spec.IPs[0], nil
}

func (c cluster) slices(ctx context.Context, name string) (map[string][]discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: identity.ImportedServiceName(name)})
	bySource := map[string][]discoveryv1.EndpointSlice{}
	for _, slice := range list.Items {
		source := slice.Labels[mcsv1beta1.LabelSourceCluster]
		bySource[source] = append(bySource[source], slice)
	}
	return bySource, err
}

// lacks complains until nothing of the import is left.
func (c cluster) lacks(ctx context.Context, name string) error {
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the ServiceImport is still there (%v)", err)
	}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: identity.ImportedServiceName(name)}, &corev1.Service{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the Service is still there (%v)", err)
	}
	left, err := c.slices(ctx, name)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("endpoints are still there")
	}
	return err
}

func (c cluster) condition(ctx context.Context, name string, kind mcsv1beta1.ServiceExportConditionType, want metav1.ConditionStatus) (metav1.Condition, error) {
	export := &mcsv1beta1.ServiceExport{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, export); err != nil {
		return metav1.Condition{}, err
	}
	found := meta.FindStatusCondition(export.Status.Conditions, string(kind))
	if found == nil || found.Status != want {
		return metav1.Condition{}, fmt.Errorf("condition %s of the export is %+v", kind, found)
	}
	return *found, nil
}

// showImport prints an import as a user would look it up.
func (t *tour) showImport(ctx context.Context, name, service string) error {
	c := t.clients[name]
	ip, err := c.importIP(ctx, service)
	if err != nil {
		return err
	}
	t.say("%s: ServiceImport %s/%s, IP %s, Service %s", name, namespace, service, ip, identity.ImportedServiceName(service))
	bySource, err := c.slices(ctx, service)
	if err != nil {
		return err
	}
	for _, source := range clusterNames {
		var addresses []string
		for _, slice := range bySource[source] {
			for _, endpoint := range slice.Endpoints {
				addresses = append(addresses, endpoint.Addresses...)
			}
		}
		if len(addresses) > 0 {
			t.say("%s:   endpoints from %s: %s", name, source, strings.Join(addresses, ", "))
		}
	}
	return nil
}
