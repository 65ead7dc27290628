package charts_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// notOurs is made by the cluster itself: an APIService per kind, for one.
var notOurs = regexp.MustCompile(`^(events[. ]|` +
	`leases\.coordination\.k8s\.io (kube-node-lease/|kube-system/(apiserver-|kube-))|` +
	`configmaps \S+/kube-root-ca\.crt$|serviceaccounts \S+/default$|serviceaccounts kube-system/\S+-(controller|publisher|collector|cleaner)$|` +
	`configmaps kube-system/(extension-apiserver|kube-apiserver)-|` +
	`apiservices\.|controllerrevisions|nodes |ipaddresses)`)

// users is what the users of the test have in their Namespace.
var users = regexp.MustCompile(`^(\S+ shop/|namespaces /shop$)`)

// inventory names every object of a cluster but what its users have: "deployments.apps ns/name".
func inventory(t *testing.T, config *rest.Config) []string {
	t.Helper()
	return slices.DeleteFunc(everything(t, config), users.MatchString)
}

// everything names every object of a cluster.
func everything(t *testing.T, config *rest.Config) []string {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of kinds that are old; they are looked at all the same
	names, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := names.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "delete") {
				continue
			}
			all, err := objects.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("%s: %v", resource.Name, err)
			}
			kind := version.WithResource(resource.Name).GroupResource().String()
			for _, obj := range all.Items {
				if id := kind + " " + obj.Namespace + "/" + obj.Name; !notOurs.MatchString(id) {
					found = append(found, id)
				}
			}
		}
	}
	return found
}

// since lists what is there now and was not before, sorted.
func since(before, now []string) []string {
	var left []string
	for _, id := range now {
		if !slices.Contains(before, id) {
			left = append(left, id)
		}
	}
	slices.SortFunc(left, strings.Compare)
	return left
}
