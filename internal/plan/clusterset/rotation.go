package clusterset

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// AnnotationReplaces on a token Secret of the common area: the Secret of the
// same ServiceAccount in whose place it is to come. While that one exists, the
// rotation goes on.
const AnnotationReplaces = "multicluster.lockstep.dev/replaces"

// LabelLastUsed is put on a token Secret by the API server, with the day, when
// its token is used for the first time (KEP-2799). It does not say by whom: also
// somebody who only tries the token, or asks about it in a TokenReview, uses it.
const LabelLastUsed = "kubernetes.io/legacy-token-last-used"

// Rotation is where the change of a member's token stands. A new token needs a
// Secret of another name: a token says the name of its Secret, and one of the
// same name and account would be the same token again.
type Rotation struct {
	// New is the token to be; nil when none has been made.
	New *corev1.Secret
	// Old are those it replaces, the oldest first.
	Old []*corev1.Secret
}

// ReadRotation finds the token Secrets of a ServiceAccount among those of the
// common area. Without a rotation under way all are old.
func ReadRotation(account string, secrets []corev1.Secret) Rotation {
	var tokens []*corev1.Secret
	for i := range secrets {
		s := &secrets[i]
		if s.Type == corev1.SecretTypeServiceAccountToken && s.Annotations[corev1.ServiceAccountNameKey] == account && s.DeletionTimestamp.IsZero() {
			tokens = append(tokens, s)
		}
	}
	slices.SortFunc(tokens, func(a, b *corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var r Rotation
	for _, s := range slices.Backward(tokens) {
		replaced := s.Annotations[AnnotationReplaces]
		if r.New == nil && slices.ContainsFunc(tokens, func(other *corev1.Secret) bool { return other != s && other.Name == replaced }) {
			r.New = s
			continue
		}
		r.Old = append(r.Old, s)
	}
	slices.Reverse(r.Old)
	return r
}

// Token is the Secret whose token is to be handed out; nil when there is none.
func (r Rotation) Token() *corev1.Secret {
	if r.New != nil || len(r.Old) == 0 {
		return r.New
	}
	return r.Old[len(r.Old)-1]
}

// Used tells that the leader's API server has seen a token in use.
func Used(token *corev1.Secret) bool { return token.Labels[LabelLastUsed] != "" }
