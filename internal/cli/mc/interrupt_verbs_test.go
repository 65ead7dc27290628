package mc

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	manifests "github.com/lockstep-dev/lockstep/config"
)

// in is a world that is a Namespace.
func in(world any) string { return world.(string) }

func anyNamespace(t *testing.T, c client.WithWatch) any { return namespace(t, c, "stopped") }

var interruptible = map[string]verb{
	"init": {
		prepare: anyNamespace,
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Init(ctx, c, InitOptions{Namespace: in(world), ClusterSet: "fleet", ClusterID: "hub"})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) { hasSet(t, c, in(world), true) },
	},
	"create membertoken": {
		prepare: anyNamespace,
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := CreateMemberToken(ctx, c, eastToken(in(world)))
			return err
		},
		done:  func(t *testing.T, c client.WithWatch, world any) { hasToken(t, c, in(world), true) },
		clean: func(t *testing.T, c client.WithWatch, world any) { hasToken(t, c, in(world), false) },
	},
	"delete membertoken": {
		prepare: func(t *testing.T, c client.WithWatch) any { return leads(t, c) },
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := DeleteMemberToken(ctx, c, DeleteMemberTokenOptions{Namespace: in(world), Name: "east-token"})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) { hasToken(t, c, in(world), false) },
	},
	"accept-leader": {
		prepare: func(t *testing.T, c client.WithWatch) any {
			_, hub := cluster(t)
			return holding(t, c, hub, heldMemory)
		},
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := AcceptLeader(ctx, c, world.(AcceptLeaderOptions))
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) {
			var set v1alpha2.ClusterSet
			get(t, c, world.(AcceptLeaderOptions).Namespace, "fleet", &set)
			same(t, "set-2", set.Annotations[v1alpha1.AnnotationAcceptLeader])
			removeSets(t, c, set.Namespace)
		},
	},
	"destroy": {
		prepare: func(t *testing.T, c client.WithWatch) any { return leads(t, c) },
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Destroy(ctx, c, DestroyOptions{Namespace: in(world), ClusterSet: "fleet"})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) {
			hasSet(t, c, in(world), false)
			hasToken(t, c, in(world), false)
		},
	},
	"join": {
		prepare: func(t *testing.T, c client.WithWatch) any { return eastJoins(t, c) },
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Join(ctx, c, world.(JoinOptions))
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) {
			hasSet(t, c, world.(JoinOptions).Namespace, true)
			get(t, c, world.(JoinOptions).Namespace, "east-token", &corev1.Secret{})
			removeSets(t, c, world.(JoinOptions).Namespace)
		},
	},
	"leave": {
		prepare: func(t *testing.T, c client.WithWatch) any {
			opts := eastJoins(t, c)
			if _, err := Join(t.Context(), c, opts); err != nil {
				t.Fatal(err)
			}
			return opts
		},
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Leave(ctx, c, LeaveOptions{Namespace: world.(JoinOptions).Namespace, ClusterSet: "fleet", Wait: testTime})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) {
			hasSet(t, c, world.(JoinOptions).Namespace, false)
			absent(t, c, world.(JoinOptions).Namespace, "east-token", &corev1.Secret{})
		},
	},
	"deploy": {
		prepare: func(t *testing.T, c client.WithWatch) any { return namespace(t, c, "stopped") },
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Deploy(ctx, c, DeployOptions{Role: manifests.Leader, Namespace: in(world), CreateNamespace: true})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) {
			result, err := Deploy(t.Context(), c, DeployOptions{Role: manifests.Leader, Namespace: in(world), CreateNamespace: true, DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, touched := range result.Touched {
				if touched.Outcome != "unchanged" {
					t.Errorf("after all: %s", touched)
				}
			}
		},
	},
	"undeploy --keep-crds": {
		prepare: func(t *testing.T, c client.WithWatch) any { return deployed(t, c) },
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Undeploy(ctx, c, UndeployOptions{Role: manifests.Leader, Namespace: in(world), KeepCRDs: true, Wait: testTime})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) {
			hasToken(t, c, in(world), true)
			if _, err := DeleteMemberToken(t.Context(), c, DeleteMemberTokenOptions{Namespace: in(world), Name: "east-token"}); err != nil {
				t.Error(err)
			}
			holdsNothing(t, c, in(world))
			absent(t, c, in(world), "antrea-mc-controller-role", &rbacv1.Role{})
		},
	},
	// Without a wait the Namespace stays, so each run needs no new one to go.
	"undeploy": {
		prepare: func(t *testing.T, c client.WithWatch) any {
			another(t, c)
			return deployed(t, c)
		},
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Undeploy(ctx, c, UndeployOptions{Role: manifests.Leader, Namespace: in(world)})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) {
			hasToken(t, c, in(world), false)
			absent(t, c, in(world), "antrea-mc-controller-role", &rbacv1.Role{})
		},
	},
	"undeploy of a Namespace": {
		prepare: func(t *testing.T, c client.WithWatch) any {
			another(t, c)
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stopped-", Labels: map[string]string{manifests.ManagedByLabel: manifests.ManagedBy}}}
			create(t, c, ns)
			return namespaceToGo{ns.Name, kinds(t)}
		},
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			w := world.(namespaceToGo)
			_, err := Undeploy(ctx, c, UndeployOptions{Role: manifests.Leader, Namespace: w.name, Kinds: w.kinds, Wait: testTime})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) {
			gone(t, c, &corev1.Namespace{}, "", world.(namespaceToGo).name)
		},
	},
	"export": {
		prepare: aService,
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Export(ctx, c, ExportOptions{Namespace: in(world), Name: "cart"})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) { hasExport(t, c, in(world), true) },
	},
	"unexport": {
		prepare: func(t *testing.T, c client.WithWatch) any {
			ns := aService(t, c)
			if _, err := Export(t.Context(), c, ExportOptions{Namespace: in(ns), Name: "cart"}); err != nil {
				t.Fatal(err)
			}
			return ns
		},
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := Unexport(ctx, c, ExportOptions{Namespace: in(world), Name: "cart"})
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) { hasExport(t, c, in(world), false) },
	},
	"rotate-token": {
		prepare: func(t *testing.T, c client.WithWatch) any { return newRotation(t, c, true) },
		run: func(ctx context.Context, c client.WithWatch, world any) error {
			_, err := RotateToken(ctx, c, world.(*rotation).options(c))
			return err
		},
		done: func(t *testing.T, c client.WithWatch, world any) { world.(*rotation).ended(t, c) },
	},
}

type namespaceToGo struct {
	name  string
	kinds kindLister
}

// deployed is a Namespace with a leader and a member token.
func deployed(t *testing.T, c client.WithWatch) string {
	t.Helper()
	ns := namespace(t, c, "stopped")
	if _, err := Deploy(t.Context(), c, DeployOptions{Role: manifests.Leader, Namespace: ns, CreateNamespace: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateMemberToken(t.Context(), c, eastToken(ns)); err != nil {
		t.Fatal(err)
	}
	return ns
}

// another makes the Deployment of a controller that needs all CRDs, so that they
// stay for the other tests.
func another(t *testing.T, c client.WithWatch) {
	t.Helper()
	labels := map[string]string{"component": deploymentName}
	create(t, c, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t, c, "another"), Name: "other", Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "other"}}}}},
	})
}

func kinds(t *testing.T) kindLister {
	t.Helper()
	_, hub := cluster(t)
	lister, err := discovery.NewDiscoveryClientForConfig(hub.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return lister
}

func holdsNothing(t *testing.T, c client.WithWatch, namespace string) {
	t.Helper()
	found, err := takeInventory(t.Context(), c, kinds(t), namespace)
	if resident := found.resident(); err != nil || resident != "" {
		t.Errorf("left behind: %s, %v", resident, err)
	}
}

func has(t *testing.T, c client.Client, namespace, name string, object client.Object, want bool) {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if got := err == nil; got != want || client.IgnoreNotFound(err) != nil {
		t.Errorf("%T %q is there: %v, want %v; %v", object, name, got, want, err)
	}
}

func hasToken(t *testing.T, c client.Client, namespace string, want bool) {
	t.Helper()
	for _, object := range []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}, &rbacv1.RoleBinding{}} {
		has(t, c, namespace, "east-token", object, want)
	}
}

func hasSet(t *testing.T, c client.Client, namespace string, want bool) {
	t.Helper()
	has(t, c, namespace, "fleet", &v1alpha2.ClusterSet{}, want)
}

func hasExport(t *testing.T, c client.Client, namespace string, want bool) {
	t.Helper()
	has(t, c, namespace, "cart", &mcsv1beta1.ServiceExport{}, want)
}

// aService is a world with a Service that can be exported.
func aService(t *testing.T, c client.WithWatch) any {
	ns := namespace(t, c, "shop")
	create(t, c, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cart"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	return ns
}

func hasDeployment(t *testing.T, c client.Client, namespace string, want bool) {
	t.Helper()
	has(t, c, namespace, deploymentName, &appsv1.Deployment{}, want)
}
