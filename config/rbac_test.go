package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The verbs of the tables below, in the order of the manifests.
const (
	read   = "get list watch"
	change = read + " update"
	full   = read + " create update delete"
	// wire is what upstream grants to members, who rely on it.
	wire       = read + " create update patch delete"
	wireStatus = "get update patch"
)

// TestRights is the whole of what each role may do. A right that is added to
// a manifest has to be added here, with the reason in the manifest.
func TestRights(t *testing.T) {
	const mc, mcs, endpointSlices = "multicluster.crd.antrea.io/", "multicluster.x-k8s.io/", "discovery.k8s.io/endpointslices"
	cases := map[string]struct {
		role   Role
		kind   string
		name   string
		rights map[string]string // group/resource → verbs
	}{
		"the leader, in the common area only": {Leader, "Role", "antrea-mc-controller-role", map[string]string{
			mc + "clustersets":                            change,
			mc + "clustersets/status":                     "update",
			mc + "clusterclaims":                          "list",
			mc + "memberclusterannounces":                 change + " delete",
			mc + "resourceexports":                        change + " delete",
			mc + "resourceexports/status":                 "update",
			mc + "resourceimports":                        full,
			endpointSlices:                                full,
			"/serviceaccounts":                            "get list",
			"rbac.authorization.k8s.io/rolebindings":      "list",
			"/secrets only antrea-mc-webhook-certificate": change,
			"coordination.k8s.io/leases":                  full,
			"/events":                                     "create patch",
			"events.k8s.io/events":                        "create patch",
		}},
		"the leader outside it": {Leader, "ClusterRole", "antrea-multicluster-antrea-mc-controller-webhook-role", map[string]string{
			"admissionregistration.k8s.io/mutatingwebhookconfigurations only antrea-multicluster-antrea-mc-mutating-webhook-configuration":     change,
			"admissionregistration.k8s.io/validatingwebhookconfigurations only antrea-multicluster-antrea-mc-validating-webhook-configuration": change,
		}},
		"a member's credential in the common area": {Leader, "Role", "antrea-mc-member-cluster-role", map[string]string{
			"/events":                     "create",
			mc + "memberclusterannounces": wire,
			mc + "resourceexports":        wire,
			mc + "resourceexports/status": wireStatus,
			mc + "resourceimports":        read,
			mc + "resourceimports/status": wireStatus,
			endpointSlices:                wire,
			"coordination.k8s.io/leases":  "get create update",
		}},
		"the member in its own Namespace; Secrets nowhere else": {Member, "Role", "antrea-mc-controller-role", map[string]string{
			mc + "clustersets":                            change,
			mc + "clustersets/status":                     "update",
			mc + "clusterclaims":                          "list",
			mc + "gateways":                               full,
			mc + "clusterinfoimports":                     full,
			mc + "clusterinfoimports/status":              "update",
			"/secrets":                                    read,
			"/secrets only antrea-mc-webhook-certificate": "update",
			"coordination.k8s.io/leases":                  "get create update",
		}},
		"the member in every Namespace": {Member, "ClusterRole", "antrea-mc-controller-role", map[string]string{
			"/services":                            full,
			"/endpoints":                           "get delete",
			endpointSlices:                         full,
			mcs + "serviceimports":                 full,
			mcs + "serviceimports/status":          "update",
			mcs + "serviceexports":                 read,
			mcs + "serviceexports/status":          "update",
			"/namespaces":                          read,
			"networking.k8s.io/servicecidrs":       read,
			"/nodes":                               read,
			"crd.antrea.io/clusternetworkpolicies": full,
			"crd.antrea.io/tiers":                  read,
			mc + "labelidentities":                 full,
			"/pods":                                "list watch",
			mc + "clustersets":                     "list",
			"admissionregistration.k8s.io/validatingwebhookconfigurations only antrea-mc-validating-webhook-configuration": change,
			"/events":              "create patch",
			"events.k8s.io/events": "create patch",
		}},
	}
	tested := map[string]bool{}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tested[c.kind+" "+c.name+" of "+string(c.role)] = true
			if diff := cmp.Diff(c.rights, rights(t, c.role, c.kind, c.name)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, role := range roles {
		for _, obj := range render(t, role, Options{}) {
			key := obj.GetKind() + " " + obj.GetName() + " of " + string(role)
			if (obj.GetKind() == "Role" || obj.GetKind() == "ClusterRole") && !tested[key] {
				t.Errorf("%s stands in no table", key)
			}
		}
	}
}

// rights flattens the rules of one role and refuses what cannot be minimal.
func rights(t *testing.T, role Role, kind, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, obj := range render(t, role, Options{}) {
		if obj.GetKind() != kind || obj.GetName() != name {
			continue
		}
		var typed rbacv1.ClusterRole // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &typed); err != nil {
			t.Fatal(err)
		}
		for _, rule := range typed.Rules {
			if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
				t.Errorf("a wildcard: %v", rule)
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					key := group + "/" + resource
					if len(rule.ResourceNames) > 0 {
						key += " only " + strings.Join(rule.ResourceNames, " ")
					}
					if _, twice := found[key]; twice {
						t.Errorf("%s stands in two rules", key)
					}
					found[key] = strings.Join(rule.Verbs, " ")
				}
			}
		}
	}
	return found
}

func reads(verbs string) bool {
	return !slices.ContainsFunc(strings.Fields(verbs), func(verb string) bool { return !slices.Contains(strings.Fields(read), verb) })
}

// Who makes a Secret in the common area can have a token of any account there.
func TestNobodyMakesSecrets(t *testing.T) {
	for _, role := range roles {
		for _, obj := range render(t, role, Options{}) {
			if obj.GetKind() != "Role" && obj.GetKind() != "ClusterRole" {
				continue
			}
			for resource, verbs := range rights(t, role, obj.GetKind(), obj.GetName()) {
				if strings.HasPrefix(resource, "/secrets") && (strings.Contains(verbs, "create") || strings.Contains(verbs, "patch")) {
					t.Errorf("%s %s may %s %s", role, id(obj), verbs, resource)
				}
			}
		}
	}
}

// Whoever may write roles, bindings, Pods or webhooks may become anybody. Reading
// some of it is harmless, and so are the webhook configurations of one's own.
func TestNoRoleLeadsToOthers(t *testing.T) {
	for _, role := range roles {
		for _, obj := range render(t, role, Options{}) {
			if obj.GetKind() != "Role" && obj.GetKind() != "ClusterRole" {
				continue
			}
			for resource, verbs := range rights(t, role, obj.GetKind(), obj.GetName()) {
				if reads(verbs) || strings.Contains(resource, " only antrea-") {
					continue
				}
				for _, forbidden := range []string{"rbac.authorization.k8s.io/", "apps/", "/pods", "/serviceaccounts", "apiextensions.k8s.io/", "admissionregistration.k8s.io/"} {
					if strings.HasPrefix(resource, forbidden) {
						t.Errorf("%s %s may touch %s", role, id(obj), resource)
					}
				}
			}
		}
	}
}
