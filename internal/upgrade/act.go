package upgrade

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	wire "github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
)

// annotationTokenOf on a member's token Secret names the ClusterSet it serves, so
// that "mc leave" takes it along.
const annotationTokenOf = "multicluster.lockstep.dev/token-of"

// act makes one change of a plan. It writes only over what the plan saw: an object
// that changed meanwhile is a conflict, and the next look decides anew.
func (d *Driver) act(ctx context.Context, run *v1alpha1.UpgradeRun, c rollout.Change) error {
	cluster := d.Leader
	if c.Lane != "" {
		var err error
		if cluster, err = d.Connect(c.Lane); err != nil {
			return err
		}
	}
	switch string(c.Do) + " " + c.Kind {
	case "create ServiceAccount":
		return cluster.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metaOf(c, map[string]string{wire.AnnotationClusterID: c.Fields[0].To})})
	case "create RoleBinding":
		return cluster.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metaOf(c, nil),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: wire.MemberClusterRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: c.Name, Namespace: c.Namespace}}})
	case "create Secret", "update Secret":
		if c.Lane != "" {
			return d.carry(ctx, run, cluster, c)
		}
		return cluster.Create(ctx, &corev1.Secret{ObjectMeta: metaOf(c, map[string]string{corev1.ServiceAccountNameKey: c.Name}), Type: corev1.SecretTypeServiceAccountToken})
	case "update ClusterSet":
		return switchTo(ctx, cluster, c)
	case "restart Deployment":
		return restart(ctx, cluster, c)
	case "apply manifests":
		return d.applyManifests(ctx, cluster, run, c)
	case "delete Secret":
		return remove(ctx, cluster, &corev1.Secret{}, c)
	case "delete ServiceAccount":
		return remove(ctx, cluster, &corev1.ServiceAccount{}, c)
	case "delete RoleBinding":
		return remove(ctx, cluster, &rbacv1.RoleBinding{}, c)
	case "delete Deployment":
		// Its Pods go with it: those that are left would not be of the new one.
		return remove(ctx, cluster, &appsv1.Deployment{}, c, client.PropagationPolicy(metav1.DeletePropagationForeground))
	}
	return fmt.Errorf("this program does not know how to do that")
}

func metaOf(c rollout.Change, annotations map[string]string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace, Annotations: map[string]string{wire.AnnotationCreatedByCLI: "true"}}
	for key, value := range annotations {
		m.Annotations[key] = value
	}
	return m
}

// carry takes a token from the leader to a member, from memory to memory.
func (d *Driver) carry(ctx context.Context, run *v1alpha1.UpgradeRun, member Cluster, c rollout.Change) error {
	account := migration.CarriedAccount(c)
	token, err := d.tokenOf(ctx, account)
	if err != nil {
		return err
	}
	wanted := &corev1.Secret{
		ObjectMeta: metaOf(c, map[string]string{annotationTokenOf: run.Spec.ClusterSet.Name}), Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{wire.TokenSecretCAKey: token.Data[wire.TokenSecretCAKey], wire.TokenSecretTokenKey: token.Data[wire.TokenSecretTokenKey]},
	}
	if c.Do == rollout.Create {
		return member.Create(ctx, wanted)
	}
	wanted.ResourceVersion = c.Seen
	return member.Update(ctx, wanted)
}

func switchTo(ctx context.Context, member Cluster, c rollout.Change) error {
	set := &v1alpha2.ClusterSet{}
	if err := getAsSeen(ctx, member, set, c); err != nil {
		return err
	}
	if len(set.Spec.Leaders) != 1 || set.Spec.Leaders[0].Secret != c.Fields[0].From {
		return stale("clustersets", c)
	}
	set.Spec.Leaders[0].Secret = c.Fields[0].To
	return member.Update(ctx, set)
}

// restart is what kubectl rollout restart does.
func restart(ctx context.Context, member Cluster, c rollout.Change) error {
	deployment := &appsv1.Deployment{}
	if err := getAsSeen(ctx, member, deployment, c); err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", time.Now().UTC().Format(time.RFC3339))
	return member.Update(ctx, deployment)
}

func (d *Driver) applyManifests(ctx context.Context, cluster Cluster, run *v1alpha1.UpgradeRun, c rollout.Change) error {
	objects, err := manifests(ctx, cluster, roleOf(c.Lane), c.Namespace, run.Spec.Image, replicasOf(run, c.Lane))
	if err != nil {
		return err
	}
	_, err = install.Apply(ctx, cluster, objects, install.Options{})
	return err
}

func roleOf(lane string) config.Role {
	if lane == "" {
		return config.Leader
	}
	return config.Member
}

// remove deletes an object that is as the plan saw it.
func remove(ctx context.Context, cluster Cluster, obj client.Object, c rollout.Change, how ...client.DeleteOption) error {
	if err := getAsSeen(ctx, cluster, obj, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.IgnoreNotFound(cluster.Delete(ctx, obj, append(how, client.Preconditions{UID: &uid, ResourceVersion: &version})...))
}

// getAsSeen reads an object; one that is not as the plan saw it, or that it did not
// see at all, is a conflict.
func getAsSeen(ctx context.Context, c client.Client, obj client.Object, change rollout.Change) error {
	if err := c.Get(ctx, client.ObjectKey{Namespace: change.Namespace, Name: change.Name}, obj); err != nil {
		return err
	}
	if obj.GetResourceVersion() != change.Seen {
		return stale(change.Kind, change)
	}
	return nil
}

func stale(resource string, c rollout.Change) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, c.Name, fmt.Errorf("it has changed since the plan was made"))
}
