package apipath_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/kube/apipath"
)

func TestTarget(t *testing.T) {
	for path, want := range map[string]struct {
		resource string
		named    bool
	}{
		"/api/v1/namespaces/shop/services":      {"services", false},
		"/api/v1/namespaces/shop/services/cart": {"services", true},
		"/api/v1/services":                      {"services", false},
		"/api/v1/namespaces":                    {"namespaces", false},
		"/api/v1/namespaces/shop":               {"namespaces", true},
		"/api/v1/namespaces/shop/status":        {"namespaces/status", true},
		"/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports/cart/status":     {"serviceexports/status", true},
		"/apis/multicluster.x-k8s.io/v1beta1/serviceexports":                                 {"serviceexports", false},
		"/k8s/clusters/east/apis/discovery.k8s.io/v1/namespaces/area/endpointslices/east.0":  {"endpointslices", true},
		"/k8s/clusters/east/api/v1/namespaces/status/services/finalize":                      {"services", true},
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clustersets.multicluster.x": {"customresourcedefinitions", true},
		"/api/v1/namespaces/events/services/cart":                                            {"services", true},
		"/api/v1/namespaces/shop/services/events":                                            {"services", true},
		"/api/v1/namespaces/shop/events/cart.1":                                              {"events", true},
		"/api/v1/namespaces/apis/services/cart/status":                                       {"services/status", true},
		"/apis/discovery.k8s.io/v1/namespaces/api/endpointslices/v1":                         {"endpointslices", true},
		"/apis/x/v1/namespaces/shop":                                                         {"namespaces", true},
		"/apis":                                                                              {"", false},
		"/apis/x":                                                                            {"", false},
		"/api/v1":                                                                            {"", false},
		"/version":                                                                           {"", false},
		"/":                                                                                  {"", false},
		"":                                                                                   {"", false},
	} {
		if resource, named := apipath.Target(path); resource != want.resource || named != want.named {
			t.Errorf("%s is about %q, named %t; want %q, %t", path, resource, named, want.resource, want.named)
		}
	}
}
