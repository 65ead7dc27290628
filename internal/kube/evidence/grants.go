package evidence

import (
	"cmp"
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
)

// Grants are all bindings that are in force in the common area, those of the whole
// cluster among them.
func Grants(ctx context.Context, r client.Reader, area string) ([]preflight.Grant, error) {
	in := client.InNamespace(area)
	roles, errR := list[rbacv1.Role](ctx, r, &rbacv1.RoleList{}, in)
	clusterRoles, errC := list[rbacv1.ClusterRole](ctx, r, &rbacv1.ClusterRoleList{})
	bindings, errB := list[rbacv1.RoleBinding](ctx, r, &rbacv1.RoleBindingList{}, in)
	everywhere, errE := list[rbacv1.ClusterRoleBinding](ctx, r, &rbacv1.ClusterRoleBindingList{})
	if err := cmp.Or(errR, errC, errB, errE); err != nil {
		return nil, err
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for i := range roles {
		rules["Role/"+roles[i].Name] = roles[i].Rules
	}
	for i := range clusterRoles {
		rules["ClusterRole/"+clusterRoles[i].Name] = clusterRoles[i].Rules
	}
	var all []preflight.Grant
	note := func(kind string, object client.Object, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		for i := range subjects {
			if s := &subjects[i]; s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" {
				s.Namespace = area // which a RoleBinding may leave out
			}
		}
		all = append(all, preflight.Grant{
			Kind: kind, Name: object.GetName(), Version: object.GetResourceVersion(), Subjects: subjects,
			MemberRole:    role.Kind == "Role" && role.Name == v1alpha1.MemberClusterRole,
			WritesExports: slices.ContainsFunc(rules[role.Kind+"/"+role.Name], writesExports),
			Builtin:       object.GetLabels()["kubernetes.io/bootstrapping"] != "",
		})
	}
	for i := range bindings {
		note("RoleBinding", &bindings[i], bindings[i].RoleRef, bindings[i].Subjects)
	}
	for i := range everywhere {
		note("ClusterRoleBinding", &everywhere[i], everywhere[i].RoleRef, everywhere[i].Subjects)
	}
	return all, nil
}

func writesExports(rule rbacv1.PolicyRule) bool {
	names := func(list []string, any ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == "*" || slices.Contains(any, s) })
	}
	return names(rule.APIGroups, v1alpha1.GroupVersion.Group) && names(rule.Resources, "resourceexports") &&
		names(rule.Verbs, "create", "update", "patch", "delete", "deletecollection")
}
