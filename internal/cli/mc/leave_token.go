package mc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// deleteTokens deletes the Secret that the ClusterSet named, and those that a
// leave which was interrupted has left: both only if the command line made them.
func (r *leaveRun) deleteTokens(ctx context.Context, named string) error {
	var secrets corev1.SecretList
	if err := r.client.List(ctx, &secrets, client.InNamespace(r.Namespace)); err != nil {
		return explain(r.what(), err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if secret.Name != named && secret.Annotations[annotationTokenOf] != r.ClusterSet {
			continue
		}
		if secret.Annotations[v1alpha1.AnnotationCreatedByCLI] == "" {
			r.did("secret", secret.Name, Kept)
			continue
		}
		if err := deleteByUID(ctx, r.client, secret, secret.UID); err != nil {
			return explain(r.what(), err)
		}
		r.did("secret", secret.Name, apply.Deleted)
	}
	return nil
}
