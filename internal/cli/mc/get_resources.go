package mc

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

func clusterSets() resource {
	return resource{
		use: "clusterset", aliases: []string{"clustersets"},
		short:  "List ClusterSets, one row for each condition of each cluster",
		list:   func() client.ObjectList { return &v1alpha2.ClusterSetList{} },
		header: []string{"CLUSTER-ID", "NAMESPACE", "CLUSTERSET-ID", "TYPE", "STATUS", "REASON", "MESSAGE"},
		plain:  6,
		rows: func(object client.Object) [][]string {
			set := object.(*v1alpha2.ClusterSet)
			var rows [][]string
			for _, cluster := range set.Status.ClusterStatuses {
				for _, c := range cluster.Conditions {
					rows = append(rows, []string{cluster.ClusterID, set.Namespace, set.Name, string(c.Type), string(c.Status), c.Reason, c.Message})
				}
			}
			if rows == nil {
				rows = [][]string{{"", set.Namespace, set.Name, "", "", "", ""}}
			}
			return rows
		},
	}
}

func resourceExports() resource {
	return resource{
		use: "resourceexport", aliases: []string{"resourceexports", "re"},
		short:  "List what members export, in the leader cluster",
		list:   func() client.ObjectList { return &v1alpha1.ResourceExportList{} },
		header: []string{"CLUSTER-ID", "NAMESPACE", "NAME", "KIND", "SOURCE", "STATUS", "MESSAGE"},
		plain:  4,
		rows: func(object client.Object) [][]string {
			export := object.(*v1alpha1.ResourceExport)
			row := []string{export.Labels[v1alpha1.LabelSourceClusterID], export.Namespace, export.Name, export.Spec.Kind,
				tuple(export.Spec.Namespace, export.Spec.Name), "", ""}
			if conditions := export.Status.Conditions; len(conditions) > 0 {
				row[5], row[6] = string(conditions[0].Type), conditions[0].Message
			}
			for _, c := range export.Status.Conditions {
				if c.Type == v1alpha1.ResourceImported && c.Status != corev1.ConditionTrue { // merged, and yet not everywhere
					row[5], row[6] = c.Reason, c.Message
				}
			}
			return [][]string{row}
		},
	}
}

func resourceImports() resource {
	return resource{
		use: "resourceimport", aliases: []string{"resourceimports", "ri"},
		short:  "List what the leader hands out, in the leader cluster",
		list:   func() client.ObjectList { return &v1alpha1.ResourceImportList{} },
		header: []string{"NAMESPACE", "NAME", "KIND", "SOURCE", "IMPORTED-BY", "NOT-BY"},
		plain:  3,
		rows: func(object client.Object) [][]string {
			imported := object.(*v1alpha1.ResourceImport)
			by, not := importers(imported)
			return [][]string{{imported.Namespace, imported.Name, imported.Spec.Kind, tuple(imported.Spec.Namespace, imported.Spec.Name), by, not}}
		},
	}
}

// importers are the members that say of an import that they have it, and those that
// say why not.
func importers(i *v1alpha1.ResourceImport) (by, not string) {
	var have, lack []string
	for _, s := range i.Status.ClusterStatuses {
		switch {
		case len(s.Conditions) == 0:
		case s.Conditions[0].Status == corev1.ConditionTrue:
			have = append(have, s.ClusterID)
		default:
			lack = append(lack, s.ClusterID+" ("+s.Conditions[0].Reason+")")
		}
	}
	return strings.Join(have, ","), strings.Join(lack, ",")
}

func memberTokens() resource {
	return resource{
		use: "membertoken", aliases: []string{"membertokens"},
		short: "List the member tokens that this command made",
		list:  func() client.ObjectList { return &corev1.SecretList{} },
		keep: func(object client.Object) bool {
			return object.GetAnnotations()[v1alpha1.AnnotationCreatedByCLI] == "true"
		},
		// After a rotation the token called NAME is in a Secret of another name, and
		// while one goes on it is in two: the one to be handed out stands for both.
		called: func(object client.Object, name string) bool {
			return object.GetName() == name || tokenName(object) == name
		},
		pick:   handedOut,
		alias:  tokenName,
		header: []string{"NAMESPACE", "NAME", "TYPE", "SECRET", "LAST-USED"},
		plain:  2,
		rows: func(object client.Object) [][]string {
			secret := object.(*corev1.Secret)
			return [][]string{{secret.Namespace, tokenName(secret), string(secret.Type), secret.Name, secret.Labels[clusterset.LabelLastUsed]}}
		},
		public: func(object client.Object) client.Object { return importable(object.(*corev1.Secret)) },
	}
}

// tokenName is what all verbs call a token: its ServiceAccount. The token of a
// member, in its own cluster, has none and goes by its Secret.
func tokenName(secret client.Object) string {
	return cmp.Or(secret.GetAnnotations()[corev1.ServiceAccountNameKey], secret.GetName())
}

// handedOut are the Secrets of a list whose token is to be handed out.
func handedOut(objects []client.Object) []client.Object {
	ofAccount := map[client.ObjectKey][]corev1.Secret{}
	key := func(secret client.Object) client.ObjectKey {
		return client.ObjectKey{Namespace: secret.GetNamespace(), Name: secret.GetAnnotations()[corev1.ServiceAccountNameKey]}
	}
	for _, object := range objects {
		ofAccount[key(object)] = append(ofAccount[key(object)], *object.(*corev1.Secret))
	}
	return slices.DeleteFunc(objects, func(object client.Object) bool {
		account := key(object)
		token := clusterset.ReadRotation(account.Name, ofAccount[account]).Token()
		return account.Name != "" && token != nil && token.Name != object.GetName()
	})
}

// importable is a token as a member can apply it: a Secret that is bound to no
// ServiceAccount, which the member has not.
func importable(secret *corev1.Secret) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: tokenName(secret)}, Data: secret.Data, Type: corev1.SecretTypeOpaque}
}

func tuple(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
