package identity_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

func TestValidateCluster(t *testing.T) {
	for id, tc := range map[string]struct {
		reason string
		want   string // in the error; empty for a valid ID
	}{
		"east":                  {"the usual case", ""},
		"e":                     {"one character is a label", ""},
		"1-east":                {"RFC 1123 allows a digit first", ""},
		strings.Repeat("a", 63): {"the longest label value", ""},
		strings.Repeat("a", 64): {"no label could carry it", "63 characters"},
		"":                      {"an ID that is missing is not one that is wrong", "is empty"},
		"east.eu":               {"the dot divides cluster from Service in slice names", "use dashes"},
		"East":                  {"names of objects are lower case", `"East"`},
		"-east":                 {"a label begins with an alphanumeric", "choose a DNS label"},
		"east_1":                {"underscores are allowed in label values, not in names", "choose a DNS label"},
	} {
		err := identity.ValidateCluster(id)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%q refused (%v): %s", id, err, tc.reason)
		case tc.want != "" && err == nil:
			t.Errorf("%q accepted: %s", id, tc.reason)
		case tc.want != "" && !strings.Contains(err.Error(), tc.want):
			t.Errorf("%q: %v; want %q in it", id, err, tc.want)
		}
	}
}

// The examples of the wire: cluster harbor, Service shop/cart.
func TestMEM_SE_4_WireNames(t *testing.T) {
	cart := types.NamespacedName{Namespace: "shop", Name: "cart"}
	for got, want := range map[string]string{
		identity.AnnounceName("harbor"):              "member-announce-from-harbor",
		identity.ServiceExportName("harbor", cart):   "harbor-shop-cart-service",
		identity.EndpointsExportName("harbor", cart): "harbor-shop-cart-endpoints",
		identity.ServiceImportName(cart):             "shop-cart-service",
		identity.EndpointsImportName(cart):           "shop-cart-endpoints",
		identity.ImportedServiceName("cart"):         "antrea-mc-cart",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Services of 54 to 63 characters cannot be imported on the wire; ours can.
func TestMEM_RI_2_ImportedNamesOfAnyLength(t *testing.T) {
	fits := strings.Repeat("a", 53)
	if got := identity.ImportedServiceName(fits); got != "antrea-mc-"+fits {
		t.Errorf("a name of 53 characters fits and must stay the wire's; got %q", got)
	}
	long := strings.Repeat("a", 62)
	b, c := identity.ImportedServiceName(long+"b"), identity.ImportedServiceName(long+"c")
	if b == c {
		t.Errorf("two Services share the imported name %q", b)
	}
	const stable = "antrea-mc-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-6fa02502"
	if got := identity.ImportedServiceName(strings.Repeat("a", 54)); got != stable {
		t.Errorf("the name may never change between versions: got %q, want %q", got, stable)
	}
}

func TestImportedNameIsAServiceName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := label().Draw(t, "name")
		if problems := validation.IsDNS1035Label(identity.ImportedServiceName(name)); len(problems) > 0 {
			t.Errorf("%q becomes %q: %v", name, identity.ImportedServiceName(name), problems)
		}
	})
}

func TestSliceNumbers(t *testing.T) {
	cart := types.NamespacedName{Namespace: "shop", Name: "cart"}
	for name, tc := range map[string]struct {
		reason string
		n      int
		ok     bool
	}{
		"east.shop.cart.0":   {"the first slice", 0, true},
		"east.shop.cart.17":  {"any slice", 17, true},
		"east.shop.cart.-1":  {"Itoa would write it, we never do", 0, false},
		"east.shop.cart.+1":  {"is not the object named 1", 0, false},
		"east.shop.cart.01":  {"is not the object named 1", 0, false},
		"east.shop.cart.":    {"no number", 0, false},
		"east.shop.cart.1.2": {"a name below ours", 0, false},
		"west.shop.cart.1":   {"another cluster's", 0, false},
		"east.shop.cart2.1":  {"another Service's", 0, false},
	} {
		if n, ok := identity.SliceNumber(name, "east", cart); n != tc.n || ok != tc.ok {
			t.Errorf("%q gives %d, %t: %s", name, n, ok, tc.reason)
		}
		cluster, service, ok := identity.SliceOwner(name)
		if wanted := tc.ok || name == "west.shop.cart.1" || name == "east.shop.cart2.1"; ok != wanted {
			t.Errorf("%q has an owner: %t", name, ok)
		} else if tc.ok && (cluster != "east" || service != cart) {
			t.Errorf("%q belongs to %q of %q", name, service, cluster)
		}
	}
	for name, want := range map[string]string{"antrea-mc-cart.east.3": "antrea-mc-cart", "antrea-mc-cart.3": "antrea-mc-cart", "cart-x7f2p": ""} {
		if service, ok := identity.ImportedSliceOwner(name); ok != (want != "") || ok && service != want {
			t.Errorf("%q belongs to %q (%t)", name, service, ok)
		}
	}
	if n, ok := identity.ImportedSliceNumber("antrea-mc-cart.3", "antrea-mc-cart", ""); n != 3 || !ok {
		t.Errorf("a slice without source cluster is not read back: %d, %t", n, ok)
	}
	if _, ok := identity.ImportedSliceNumber("antrea-mc-cart.east.3", "antrea-mc-cart", ""); ok {
		t.Error("a slice of a cluster is taken for one without")
	}
}

// Two slices have one name only when cluster, Service and number are equal:
// dots cannot be part of any of them.
func TestSliceNamesNeverMeet(t *testing.T) {
	type slice struct {
		cluster, namespace, name string
		n                        int
	}
	gen := rapid.Custom(func(t *rapid.T) slice {
		short := rapid.SampledFrom([]string{"a", "b", "a-b", "b-a", "1"}) // made to meet
		return slice{short.Draw(t, "cluster"), short.Draw(t, "namespace"), short.Draw(t, "name"), rapid.IntRange(0, 12).Draw(t, "n")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		nameOf := func(s slice) string {
			return identity.SliceName(s.cluster, types.NamespacedName{Namespace: s.namespace, Name: s.name}, s.n)
		}
		if (nameOf(a) == nameOf(b)) != (a == b) {
			t.Errorf("%+v is %q and %+v is %q", a, nameOf(a), b, nameOf(b))
		}
		if n, ok := identity.SliceNumber(nameOf(a), a.cluster, types.NamespacedName{Namespace: a.namespace, Name: a.name}); !ok || n != a.n {
			t.Errorf("%q gives %d, %t; want %d", nameOf(a), n, ok, a.n)
		}
	})
}

func label() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`)
}

// What the wire joins is read back from all four objects that bear it.
func TestMEM_SE_6_JoinedNames(t *testing.T) {
	cart := types.NamespacedName{Namespace: "shop", Name: "cart"}
	for name, tc := range map[string]struct {
		reason, cluster, want string
		ok                    bool
	}{
		identity.ServiceImportName(cart):             {"an import", "", "shop-cart", true},
		identity.EndpointsImportName(cart):           {"an import", "", "shop-cart", true},
		identity.ServiceExportName("harbor", cart):   {"an export", "harbor", "shop-cart", true},
		identity.EndpointsExportName("harbor", cart): {"an export", "harbor", "shop-cart", true},
		"pier-shop-cart-service":                     {"an export of another cluster", "harbor", "", false},
	} {
		if got, ok := identity.JoinedNameOf(name, tc.cluster); got != tc.want || ok != tc.ok {
			t.Errorf("%q of cluster %q gives %q, %t: %s", name, tc.cluster, got, ok, tc.reason)
		}
	}
	if _, ok := identity.JoinedNameOf("harbor-clusterinfo", "harbor"); ok {
		t.Error("an export of another kind is taken for one of a Service")
	}
}

func TestMEM_RI_2_ImportedNamesAreReadBack(t *testing.T) {
	if name, ok := identity.NameOfImported(identity.ImportedServiceName("cart")); name != "cart" || !ok {
		t.Errorf("got %q, %t", name, ok)
	}
	if _, ok := identity.NameOfImported("cart"); ok {
		t.Error("a Service that stands for no import is taken for one that does")
	}
	for cluster, want := range map[string]string{"east": "antrea-mc-cart.east.3", "": "antrea-mc-cart.3"} {
		got := identity.ImportedSliceName("antrea-mc-cart", cluster, 3)
		if n, ok := identity.ImportedSliceNumber(got, "antrea-mc-cart", cluster); got != want || n != 3 || !ok {
			t.Errorf("slice 3 of cluster %q is %q and reads back as %d, %t", cluster, got, n, ok)
		}
	}
}

// Two Services stand aside under one name only when they are one, and such a name
// is one of an object.
func TestWK_6_NamesAsideNeverMeet(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) types.NamespacedName {
		short := rapid.SampledFrom([]string{"a", "b", "a-b", "b-a", "a-b-a", "1"}) // made to meet
		return types.NamespacedName{Namespace: short.Draw(t, "namespace"), Name: short.Draw(t, "name")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if (identity.ServiceImportAside(a) == identity.ServiceImportAside(b)) != (a == b) {
			t.Errorf("%s and %s stand aside as %q", a, b, identity.ServiceImportAside(a))
		}
		if identity.ServiceImportAside(a) == identity.ServiceImportName(b) || identity.EndpointsImportAside(a) == identity.EndpointsImportName(b) {
			t.Errorf("%s stands aside in the place of %s", a, b)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		service := types.NamespacedName{Namespace: label().Draw(t, "namespace"), Name: label().Draw(t, "name")}
		for _, name := range []string{identity.ServiceImportAside(service), identity.EndpointsImportAside(service)} {
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				t.Errorf("%q: %v", name, problems)
			}
		}
	})
	const stable = "prod-web-api-f6d4be81-service"
	if got := identity.ServiceImportAside(types.NamespacedName{Namespace: "prod", Name: "web-api"}); got != stable {
		t.Errorf("the name may never change between versions: got %q, want %q", got, stable)
	}
}
