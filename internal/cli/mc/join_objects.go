package mc

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// annotationTokenOf on a token Secret that Join made: the ClusterSet it serves.
// It lets a leave that was interrupted find the Secret after the ClusterSet,
// which names it, has gone.
const annotationTokenOf = "multicluster.lockstep.dev/token-of"

func newSecret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// wantedToken takes from the manifest what a credential needs and leaves the
// rest: whatever else it says was meant for another cluster.
func (r *joinRun) wantedToken() *corev1.Secret {
	secret := newSecret(r.Namespace, r.Token.Name)
	secret.Annotations = map[string]string{v1alpha1.AnnotationCreatedByCLI: "true", annotationTokenOf: r.ClusterSet}
	maps.Copy(secret.Annotations, joinfile.Bound(r.Token))
	secret.Type = corev1.SecretTypeOpaque
	secret.Data = r.Token.Data
	return secret
}

func (r *joinRun) ensureToken(ctx context.Context) error {
	if r.TokenSecretName != "" {
		return nil
	}
	wanted := r.wantedToken()
	done, err := ensure(ctx, r.client, wanted, func(present *corev1.Secret) error {
		if equality.Semantic.DeepEqual(present.Data, wanted.Data) {
			return nil
		}
		if present.Annotations[v1alpha1.AnnotationCreatedByCLI] == "" {
			return r.foreignSecret()
		}
		present.Data = wanted.Data
		metav1.SetMetaDataAnnotation(&present.ObjectMeta, annotationTokenOf, r.ClusterSet)
		delete(present.Annotations, v1alpha1.AnnotationClusterID) // of the token before
		maps.Copy(present.Annotations, joinfile.Bound(r.Token))
		return nil
	})
	if err != nil {
		return err
	}
	r.did("Secret", wanted.Name, done.Outcome)
	if done.Outcome != apply.Unchanged {
		r.undo.first(done.undoing("Secret"), done.takeBack(r.client, func(now, before *corev1.Secret) { now.Data = before.Data }))
	}
	return nil
}

func (r *joinRun) foreignSecret() error {
	return &refusal.Refusal{
		What: r.what(),
		Why:  fmt.Sprintf("Secret %q in Namespace %q holds something else and was not made by this command", r.Token.Name, r.Namespace),
		Next: fmt.Sprintf("use it as it is with --token-secret-name %s, or give the token Secret another name", r.Token.Name),
	}
}

func (r *joinRun) wantedSet() *v1alpha2.ClusterSet {
	return &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.ClusterSet},
		Spec: v1alpha2.ClusterSetSpec{
			ClusterID: r.ClusterID,
			Leaders:   []v1alpha2.LeaderCluster{{ClusterID: r.LeaderClusterID, Server: r.LeaderAPIServer, Secret: r.secretName()}},
			Namespace: r.LeaderNamespace,
		},
	}
}

func (r *joinRun) ensureSet(ctx context.Context) error {
	wanted := r.wantedSet()
	done, err := ensure(ctx, r.client, wanted, func(present *v1alpha2.ClusterSet) error {
		if !present.DeletionTimestamp.IsZero() {
			return r.leaving()
		}
		present.Spec = wanted.Spec
		return nil
	})
	if err != nil {
		return err
	}
	r.did("ClusterSet", wanted.Name, done.Outcome)
	switch done.Outcome {
	case apply.Created:
		r.undo.first(done.undoing("ClusterSet"), r.withdraw(done.Now))
	case apply.Configured:
		r.undo.first(done.undoing("ClusterSet"), done.takeBack(r.client, func(now, before *v1alpha2.ClusterSet) { now.Spec = before.Spec }))
	}
	return nil
}

func (r *joinRun) leaving() error {
	return &refusal.Refusal{
		What: r.what(),
		Why:  fmt.Sprintf("its ClusterSet is being deleted: cluster %q is still leaving", r.ClusterID),
		Next: fmt.Sprintf("wait for it (%s), then repeat the command", r.leaveCommand()),
	}
}

func (r *joinRun) did(kind, name string, outcome Outcome) {
	r.result.Touched = append(r.result.Touched, Touched{Kind: strings.ToLower(kind), Namespace: r.Namespace, Name: name, Outcome: outcome})
}

// undoing says what takeBack does, as the object of "cannot …".
func (e ensured[T, P]) undoing(kind string) string {
	verb := "restore"
	if e.Outcome == apply.Created {
		verb = "delete"
	}
	return fmt.Sprintf("%s %s %q", verb, kind, e.Now.GetName())
}

// changed lists the objects a run has written, for a sentence.
func changed(touched []Touched) string {
	var names []string
	for _, t := range touched {
		if t.Outcome != apply.Unchanged {
			names = append(names, fmt.Sprintf("%s %q (%s)", t.Kind, t.Name, t.Outcome))
		}
	}
	return strings.Join(names, " and ")
}
