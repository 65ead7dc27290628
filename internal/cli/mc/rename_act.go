package mc

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/rename"
)

// act makes the changes of one step. It writes only over what the plan saw: an
// object that changed meanwhile is a conflict, and the next look decides anew.
func (r *renameRun) act(ctx context.Context, seen rename.Observed, step rollout.Step) error {
	leader, err := r.at(seen.Parts.Leader.Context)
	if err != nil {
		return err
	}
	area := seen.Parts.Leader.Namespace
	if step.ID == rename.StepCredential { // all of it is one: what is there already stays
		_, err := CreateMemberToken(ctx, leader, MemberTokenOptions{Namespace: area, Name: step.Changes[0].Name, ClusterID: r.New})
		return err
	}
	for _, c := range step.Changes {
		place := leader
		if c.Lane != "" {
			if place, err = r.at(c.Lane); err != nil {
				return err
			}
		}
		switch string(c.Do) + " " + c.Kind {
		case "create Secret", "update Secret":
			err = r.carry(ctx, seen, leader, place, c)
		case "update ClusterSet":
			err = r.switchSet(ctx, place, c, step.ID == rename.StepForget)
		case "delete MemberClusterAnnounce":
			err = deleteAsSeen(ctx, place, &v1alpha1.MemberClusterAnnounce{}, c)
		case "delete Secret":
			err = deleteAsSeen(ctx, place, &corev1.Secret{}, c)
		case "delete ServiceAccount":
			_, err = DeleteMemberToken(ctx, place, DeleteMemberTokenOptions{Namespace: area, Name: c.Name})
		default:
			err = fmt.Errorf("this program does not know how to %s", c)
		}
		if err != nil {
			return fmt.Errorf("cannot %s: %w", c, err)
		}
	}
	return nil
}

// carry takes the new token from the leader to the member, from memory to memory.
func (r *renameRun) carry(ctx context.Context, seen rename.Observed, leader, member client.Client, c rollout.Change) error {
	credential := r.Token
	if all, _ := seen.Credentials.Get(); len(all) > 0 {
		for _, one := range all {
			if one.BoundID == r.New {
				credential = one.Account
			}
		}
	}
	rotation, err := readRotation(ctx, leader, seen.Parts.Leader.Namespace, credential)
	if err != nil {
		return err
	}
	token := rotation.Token()
	if token == nil || len(token.Data[v1alpha1.TokenSecretTokenKey]) == 0 {
		return staleChange(c)
	}
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, ResourceVersion: c.Seen,
			Annotations: map[string]string{v1alpha1.AnnotationCreatedByCLI: "true", annotationTokenOf: seen.Parts.ClusterSet}},
		Type: corev1.SecretTypeOpaque, Data: maps.Clone(token.Data),
	}
	maps.DeleteFunc(wanted.Data, func(key string, _ []byte) bool {
		return key != v1alpha1.TokenSecretCAKey && key != v1alpha1.TokenSecretTokenKey
	})
	if c.Do == rollout.Create {
		return member.Create(ctx, wanted)
	}
	return member.Update(ctx, wanted)
}

// switchSet gives the member its new ID, with the mark that says which one that
// takes the place of; in the end the mark goes. What the member remembers of the
// leader was learnt under the old ID.
func (r *renameRun) switchSet(ctx context.Context, member client.Client, c rollout.Change, end bool) error {
	set := &v1alpha2.ClusterSet{}
	if err := member.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, set); err != nil {
		return err
	}
	if end {
		if set.Annotations[v1alpha1.AnnotationRenamedFrom] != r.Old {
			return staleChange(c)
		}
		delete(set.Annotations, v1alpha1.AnnotationRenamedFrom)
		return member.Update(ctx, set)
	}
	if set.Spec.ClusterID != r.Old || len(set.Spec.Leaders) != 1 || set.Spec.Leaders[0].Secret != c.Fields[1].From {
		return staleChange(c)
	}
	set.Spec.ClusterID = r.New
	set.Spec.Leaders[0].Secret = c.Fields[1].To
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationRenamedFrom, r.Old)
	delete(set.Annotations, v1alpha1.AnnotationLeaderSeen)
	return member.Update(ctx, set)
}

// deleteAsSeen deletes an object if it is the one that the plan saw, whatever its
// heartbeats have changed since.
func deleteAsSeen(ctx context.Context, c client.Client, object client.Object, change rollout.Change) error {
	err := c.Get(ctx, client.ObjectKey{Namespace: change.Namespace, Name: change.Name}, object)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return deleteByUID(ctx, c, object, object.GetUID())
}

func staleChange(c rollout.Change) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: c.Kind}, c.Name, fmt.Errorf("it has changed since the plan was made"))
}
