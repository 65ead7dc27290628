package mc

import (
	"bytes"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/rename"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

func knownOr[T any](value T, err error) rule.Read[T] {
	if err != nil {
		return rule.Unreadable[T](err.Error())
	}
	return rule.Known(value)
}

// observeCredentials reads the accounts that are bound to one of the two IDs, or
// have the name that the new one would get.
func (r *renameRun) observeCredentials(ctx context.Context, seen *rename.Observed) {
	seen.Credentials = knownOr(r.credentials(ctx, seen))
}

func (r *renameRun) credentials(ctx context.Context, seen *rename.Observed) ([]rename.Credential, error) {
	leader, err := r.at(seen.Parts.Leader.Context)
	if err != nil {
		return nil, err
	}
	in := client.InNamespace(seen.Parts.Leader.Namespace)
	var accounts corev1.ServiceAccountList
	if err := leader.List(ctx, &accounts, in); err != nil {
		return nil, err
	}
	var bindings rbacv1.RoleBindingList
	if err := leader.List(ctx, &bindings, in); err != nil {
		return nil, err
	}
	var secrets corev1.SecretList
	if err := leader.List(ctx, &secrets, in); err != nil {
		return nil, err
	}
	var found []rename.Credential
	for _, a := range accounts.Items {
		bound := a.Annotations[v1alpha1.AnnotationClusterID]
		if bound != r.Old && bound != r.New && a.Name != r.Token {
			continue
		}
		c := rename.Credential{Account: a.Name, BoundID: bound, Ours: a.Annotations[v1alpha1.AnnotationCreatedByCLI] != ""}
		if token := clusterset.ReadRotation(a.Name, secrets.Items).Token(); token != nil {
			c.Whole = grantedTo(bindings.Items, a)
			c.Token = clusterset.Credential(clusterset.Token(token.Data[v1alpha1.TokenSecretTokenKey]))
		}
		found = append(found, c)
	}
	return found, nil
}

// grantedTo tells whether an account has the Role of members.
func grantedTo(bindings []rbacv1.RoleBinding, account corev1.ServiceAccount) bool {
	return slices.ContainsFunc(bindings, func(b rbacv1.RoleBinding) bool {
		return b.RoleRef.Kind == "Role" && b.RoleRef.Name == v1alpha1.MemberClusterRole && slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Name == account.Name && (s.Namespace == account.Namespace || s.Namespace == "")
		})
	})
}

// observeMembers reads the Secrets of the one that is renamed, and what the others
// import from it.
func (r *renameRun) observeMembers(ctx context.Context, seen *rename.Observed) {
	seen.Imported = map[string]rule.Read[map[types.NamespacedName]rename.Ready]{}
	announces, _ := seen.Evidence.Leader.Announces.Get()
	for _, part := range seen.Parts.Members {
		c, err := r.at(part.Context)
		switch upstream := followsWire(announces, part.ID); {
		case part.ID == r.Old || part.ID == r.New:
			if err == nil {
				seen.Secrets = knownOr(r.secrets(ctx, c, part, seen.Parts.ClusterSet))
			}
		case err != nil || part.Unreachable != "":
			seen.Imported[part.ID] = rule.Unreadable[map[types.NamespacedName]rename.Ready](part.Unreachable)
		case upstream:
			// It imports what the leader merged, in which the two IDs are not told apart;
			// the leader replaces it in one write.
			seen.Imported[part.ID] = rule.Known(map[types.NamespacedName]rename.Ready{})
		default:
			seen.Imported[part.ID] = knownOr(r.imported(ctx, c, seen.Parts.Leader.Namespace))
		}
	}
}

func followsWire(announces []v1alpha1.MemberClusterAnnounce, id string) bool {
	return slices.ContainsFunc(announces, func(a v1alpha1.MemberClusterAnnounce) bool {
		return a.ClusterID == id && !preflight.PublishesSlices(&a)
	})
}

func (r *renameRun) secrets(ctx context.Context, c client.Client, part preflight.Part, set string) ([]rename.Secret, error) {
	var all corev1.SecretList
	if err := c.List(ctx, &all, client.InNamespace(part.Namespace)); err != nil {
		return nil, err
	}
	var found []rename.Secret
	for _, s := range all.Items {
		token := bytes.TrimSpace(s.Data[v1alpha1.TokenSecretTokenKey])
		serves := s.Annotations[annotationTokenOf] == set
		if len(token) == 0 && !serves && s.Name != r.Token && s.Name != r.Token+"-renamed" {
			continue
		}
		found = append(found, rename.Secret{Name: s.Name, Type: string(s.Type), Credential: clusterset.Credential(clusterset.Token(token)),
			Ours: s.Annotations[v1alpha1.AnnotationCreatedByCLI] != "", Serves: serves, Seen: s.ResourceVersion})
	}
	return found, nil
}

// imported counts the ready endpoints of imported Services that come from one of
// the two IDs. In a leader cluster the common area holds slices of another kind.
func (r *renameRun) imported(ctx context.Context, c client.Client, area string) (map[types.NamespacedName]rename.Ready, error) {
	var all discoveryv1.EndpointSliceList
	if err := c.List(ctx, &all, client.HasLabels{mcsv1beta1.LabelSourceCluster, discoveryv1.LabelServiceName}); err != nil {
		return nil, err
	}
	found := map[types.NamespacedName]rename.Ready{}
	for _, s := range all.Items {
		source := s.Labels[mcsv1beta1.LabelSourceCluster]
		if s.Namespace == area || source != r.Old && source != r.New {
			continue
		}
		name := types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[mcsv1beta1.LabelServiceName]}
		ready := found[name]
		for _, endpoint := range s.Endpoints {
			switch {
			case !ptr.Deref(endpoint.Conditions.Ready, true):
			case source == r.Old:
				ready.Old++
			default:
				ready.New++
			}
		}
		found[name] = ready
	}
	return found, nil
}
