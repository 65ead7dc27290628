package admission_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

type export = v1alpha1.ResourceExport

const (
	service       = v1alpha1.KindService
	endpoints     = v1alpha1.KindEndpoints
	clusterInfo   = v1alpha1.KindClusterInfo
	labelIdentity = v1alpha1.KindLabelIdentity
	policy        = v1alpha1.KindAntreaClusterNetworkPolicy
)

func observedExport(caller admission.Caller) admission.ExportObserved {
	return admission.ExportObserved{
		Area: place, Caller: caller,
		Claims:   rule.Known([]netip.Prefix{netip.MustParsePrefix("10.97.0.0/16")}),
		SameHash: rule.Known(""),
	}
}

func terminating(e *export) { now := metav1.Now(); e.DeletionTimestamp = &now }

func labelled(key, value string) func(*export) { return func(e *export) { e.Labels[key] = value } }

// The cases that upstream tests, and one case on either side of
// each rule.
func TestExport(t *testing.T) {
	mine, harbor := exportOf(service), bound("harbor")
	for name, c := range map[string]verdictCase[export]{
		"a Service":         {create, member, harbor, nil, exportOf(service), "", true},
		"Endpoints":         {create, member, harbor, nil, exportOf(endpoints), "", true},
		"a ClusterInfo":     {create, member, harbor, nil, exportOf(clusterInfo), "", true},
		"a LabelIdentity":   {create, member, harbor, nil, exportOf(labelIdentity), "", true},
		"an own update":     {update, member, harbor, mine, mine, "", true},
		"an own delete":     {del, member, harbor, mine, nil, "ADM-RE-7", true},
		"nothing to decode": {create, member, harbor, nil, nil, "", false},
		"a person":          {create, person, stranger, nil, exportOf(policy), "ADM-RE-1", true},
		"an administrator":  {create, admin, stranger, nil, exportOf(policy), "ADM-RE-1", true},
		"from elsewhere":    {create, elsewhere, stranger, nil, exportOf(policy), "ADM-RE-1", true},
		"leader updates":    {update, controller, unbound(false), mine, mine, "ADM-RE-2", true},
		"leader deletes":    {del, controller, unbound(false), mine, nil, "ADM-RE-2", true},
		"leader, when bound, creates a foreign one": {create, controller, bound("tower"), nil, mine, "ADM-RE-13", false},
		"no account creates":                        {create, member, missing, nil, mine, "ADM-RE-3", false},
		"no account deletes what lives":             {del, member, missing, mine, nil, "ADM-RE-3", false},
		"no account deletes what is going":          {del, member, missing, exportOf(service, terminating), nil, "ADM-RE-3", true},
		"an account that cannot be read":            {update, member, unreadable, mine, mine, "ADM-RE-3", false},
		"an administrator's own account":            {create, member, unbound(false), nil, exportOf(policy), "ADM-RE-4", true},
		"an empty binding":                          {create, member, bound(""), nil, mine, "ADM-RE-5", false},
		"an update of another's":                    {update, member, bound("depot"), mine, mine, "ADM-RE-6", false},
		"a delete of another's":                     {del, member, bound("depot"), mine, nil, "ADM-RE-6", false},
		"the finalizer dropped":                     {update, member, harbor, mine, exportOf(service, func(e *export) { e.Finalizers = nil }), "ADM-RE-8", false},
		"the finalizer respelled":                   {update, member, harbor, mine, exportOf(service, func(e *export) { e.Finalizers = []string{v1alpha1.FinalizerExportLegacy} }), "", true},
		"no finalizer, before or after":             {update, member, harbor, exportOf(service, func(e *export) { e.Finalizers = nil }), exportOf(service, func(e *export) { e.Finalizers = nil }), "", true},
		"another Service at an update":              {update, member, harbor, mine, exportOf(service, func(e *export) { e.Spec.Namespace, e.Spec.Name = "shop-cart", "x" }), "ADM-RE-9", false},
		"another kind at an update":                 {update, member, harbor, exportOf(endpoints), mine, "ADM-RE-9", false},
		"a moved controller":                        {update, member, harbor, exportOf(clusterInfo), exportOf(clusterInfo, func(e *export) { e.Spec.Namespace = "mc" }), "", true},
		"a policy of a member":                      {create, member, harbor, nil, exportOf(policy), "ADM-RE-10", false},
		"no Service payload":                        {create, member, harbor, nil, exportOf(service, func(e *export) { e.Spec.Service = nil }), "ADM-RE-11", false},
		"no Endpoints payload":                      {create, member, harbor, nil, exportOf(endpoints, func(e *export) { e.Spec.Endpoints = nil }), "ADM-RE-11", false},
		"a name with a dot":                         {create, member, harbor, nil, exportOf(service, func(e *export) { e.Spec.Name = "ca.rt" }), "ADM-RE-12", false},
		"a Namespace in capitals":                   {create, member, harbor, nil, exportOf(service, func(e *export) { e.Spec.Namespace = "Shop" }), "ADM-RE-12", false},
		"a spoofed cluster":                         {create, member, harbor, nil, exportOf(service, func(e *export) { e.Spec.ClusterID = "depot" }), "ADM-RE-13", false},
		"a spoofed cluster, updated":                {update, member, harbor, mine, exportOf(service, func(e *export) { e.Spec.ClusterID = "depot" }), "ADM-RE-13", false},
		"a spoofed source cluster":                  {create, member, harbor, nil, exportOf(service, labelled("sourceClusterID", "depot")), "ADM-RE-14", false},
		"a spoofed source cluster, updated":         {update, member, harbor, mine, exportOf(service, labelled("sourceClusterID", "depot")), "ADM-RE-14", false},
		"a spoofed kind":                            {create, member, harbor, nil, exportOf(service, labelled("sourceKind", endpoints)), "ADM-RE-15", false},
		"a spoofed name":                            {create, member, harbor, nil, exportOf(service, labelled("sourceName", "x")), "ADM-RE-16", false},
		"a spoofed Namespace":                       {create, member, harbor, nil, exportOf(service, labelled("sourceNamespace", "x")), "ADM-RE-16", false},
		"a foreign prefix":                          {create, member, harbor, nil, exportOf(service, func(e *export) { e.Name = "depot-shop-cart-service" }), "ADM-RE-17", false},
		"a wrong ClusterInfo name":                  {create, member, harbor, nil, exportOf(clusterInfo, func(e *export) { e.Name = "harbor-info" }), "ADM-RE-17", false},
		"a generated name":                          {create, member, harbor, nil, exportOf(labelIdentity, func(e *export) { e.Name, e.Spec.LabelIdentity = "", nil }), "ADM-RE-17", false},
		"labels without payload":                    {create, member, harbor, nil, exportOf(labelIdentity, func(e *export) { e.Spec.LabelIdentity = nil }), "ADM-RE-17", false},
		"a network of another":                      {create, member, harbor, nil, exportOf(clusterInfo, func(e *export) { e.Spec.ClusterInfo.ClusterID = "depot" }), "ADM-RE-18", false},
		"a ClusterInfo without payload":             {create, member, harbor, nil, exportOf(clusterInfo, func(e *export) { e.Spec.ClusterInfo = nil }), "", true},
		"no finalizer":                              {create, member, harbor, nil, exportOf(service, func(e *export) { e.Finalizers = nil }), "ADM-RE-19", false},
		"the old finalizer":                         {create, member, harbor, nil, exportOf(service, func(e *export) { e.Finalizers = []string{v1alpha1.FinalizerExportLegacy} }), "", true},
		// Another tuple with the same name: known, and left so.
		"the ambiguous tuple": {create, member, bound("harbor-shop"), nil, exportOf(service, func(e *export) {
			e.Name, e.Spec.ClusterID, e.Spec.Namespace, e.Spec.Name = "harbor-shop-cart-x-service", "harbor-shop", "cart", "x"
			e.Labels["sourceClusterID"], e.Labels["sourceNamespace"], e.Labels["sourceName"] = "harbor-shop", "cart", "x"
		}), "", true},
		"a foreign finalizer":        {create, member, harbor, nil, exportOf(service, func(e *export) { e.Finalizers = append(e.Finalizers, "x.example/y") }), "WK-36", false},
		"a foreign finalizer, kept":  {update, member, harbor, exportOf(service, func(e *export) { e.Finalizers = append(e.Finalizers, "x.example/y") }), exportOf(service, func(e *export) { e.Finalizers = append(e.Finalizers, "x.example/y") }), "", true},
		"the Role without a binding": {create, member, unbound(true), nil, mine, "WK-32", false},
		"the Role from elsewhere":    {create, elsewhere, missing, nil, mine, "WK-32", false},
		"the Role held by a person":  {create, person, missing, nil, mine, "WK-32", false},
		"the Role, unknown":          {create, elsewhere, unreadable, nil, mine, "WK-32", false},
		"an administrator's Role":    {create, admin, missing, nil, mine, "ADM-RE-1", true},
	} {
		t.Run(name, func(t *testing.T) {
			name := ""
			if c.new != nil {
				name = c.new.Name
			}
			got := admission.Export(c.request(name), observedExport(c.caller))
			c.check(t, got)
			if strings.Contains(got.Message, "depot") && !strings.Contains(name, "depot") {
				t.Errorf("%q names another member", got.Message)
			}
		})
	}
}

// While members migrate, credentials without a binding can be let through.
func TestUnboundCredentialsWhileMigrating(t *testing.T) {
	o := observedExport(unbound(true))
	o.Policy.TrustUnbound = true
	r := admission.Request[export]{Operation: create, User: member, Object: exportOf(service)}
	if got := admission.Export(r, o); !got.Allowed || got.Rule != "ADM-RE-4" {
		t.Errorf("%+v", got)
	}
}

func TestNetworkClaims(t *testing.T) {
	info := func(serviceCIDR string, podCIDRs ...string) *export {
		return exportOf(clusterInfo, func(e *export) {
			e.Spec.ClusterInfo.ServiceCIDR, e.Spec.ClusterInfo.PodCIDRs = serviceCIDR, podCIDRs
		})
	}
	reserved := netip.MustParsePrefix("172.16.0.0/16")
	for name, c := range map[string]struct {
		old, new *export
		allowed  bool
	}{
		"its own ranges":                    {nil, info("10.96.0.0/16", "10.32.0.0/16"), true},
		"the neighbouring range":            {nil, info("10.98.0.0/16"), true},
		"a range of another":                {nil, info("10.97.4.0/24"), false},
		"a range around another's":          {nil, info("10.0.0.0/8"), false},
		"a Pod range of another":            {nil, info("10.96.0.0/16", "10.97.0.0/16"), false},
		"everything":                        {nil, info("0.0.0.0/0"), false},
		"everything in two halves":          {nil, info("10.96.0.0/16", "0.0.0.0/1", "128.0.0.0/1"), false},
		"the machine itself":                {nil, info("127.0.0.0/8"), false},
		"a range of the leader":             {nil, info("172.16.3.0/24"), false},
		"no range at all":                   {nil, info("ten"), false},
		"nothing":                           {nil, info(""), true},
		"IPv6":                              {nil, info("fd96::/112"), true},
		"the old claim, kept":               {info("10.97.0.0/16"), info("10.97.0.0/16"), true},
		"a new claim beside one that stays": {info("10.97.0.0/16"), info("10.97.0.0/16", "10.97.0.0/17"), false},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedExport(bound("harbor"))
			o.Policy.Reserved = []netip.Prefix{reserved}
			r := admission.Request[export]{Operation: create, User: member, Object: c.new}
			if c.old != nil {
				r.Operation, r.Old = update, c.old
			}
			got := admission.Export(r, o)
			if got.Allowed != c.allowed || !got.Allowed && got.Rule != "WK-9" {
				t.Errorf("%+v", got)
			}
			if strings.Contains(got.Message, "172.16.0.0/16") || name == "a range around another's" && strings.Contains(got.Message, "10.97") {
				t.Errorf("%q tells whose range it is", got.Message)
			}
		})
	}
	gateway := exportOf(clusterInfo, func(e *export) { e.Spec.ClusterInfo.GatewayInfos[0].GatewayIP = "10.97.0.9" })
	if got := admission.Export(admission.Request[export]{Operation: create, User: member, Object: gateway}, observedExport(bound("harbor"))); got.Allowed {
		t.Error("a gateway inside another's range is allowed")
	}
	o := observedExport(bound("harbor"))
	o.Claims = rule.Unreadable[[]netip.Prefix]("no answer")
	if got := admission.Export(admission.Request[export]{Operation: create, User: member, Object: info("10.96.0.0/16")}, o); got.Allowed || got.Code != 500 {
		t.Errorf("claims that nobody knows: %+v", got)
	}
}

func TestEqualHashes(t *testing.T) {
	r := admission.Request[export]{Operation: create, User: member, Object: exportOf(labelIdentity)}
	for known, allowed := range map[string]bool{"": true, r.Object.Spec.LabelIdentity.NormalizedLabel: true, "ns:&pod:app=secret": false} {
		o := observedExport(bound("harbor"))
		o.SameHash = rule.Known(known)
		got := admission.Export(r, o)
		if got.Allowed != allowed || !allowed && got.Rule != "WK-35" || strings.Contains(got.Message, "secret") {
			t.Errorf("%q: %+v", known, got)
		}
	}
	o := observedExport(bound("harbor"))
	o.SameHash = rule.Read[string]{}
	if got := admission.Export(r, o); got.Allowed {
		t.Error("nobody looked, and it is allowed")
	}
}

func TestMutateExport(t *testing.T) {
	for name, c := range map[string]struct {
		export *export
		want   string
	}{
		"other kinds stay as they are": {exportOf(service), "null"},
		"a bare policy": {exportOf(policy, func(e *export) { e.Labels, e.Finalizers = nil, nil }),
			`[{"op":"add","path":"/metadata/labels","value":{"sourceKind":"AntreaClusterNetworkPolicy","sourceName":"strict","sourceNamespace":""}},{"op":"add","path":"/metadata/finalizers","value":["resourceexport.antrea.io/finalizer"]}]`},
		"one with labels and a finalizer": {exportOf(policy, func(e *export) {
			e.Labels, e.Finalizers = map[string]string{"team": "x", "sourceName": "old"}, []string{"x.example/y"}
		}), `[{"op":"add","path":"/metadata/labels/sourceKind","value":"AntreaClusterNetworkPolicy"},{"op":"add","path":"/metadata/labels/sourceName","value":"strict"},{"op":"add","path":"/metadata/labels/sourceNamespace","value":""},{"op":"add","path":"/metadata/finalizers/-","value":"resourceexport.antrea.io/finalizer"}]`},
		"one that is going keeps its finalizers": {exportOf(policy, terminating, func(e *export) {
			e.Labels, e.Finalizers = map[string]string{"sourceKind": policy, "sourceName": "strict", "sourceNamespace": ""}, []string{"x.example/y"}
		}), "null"},
		"by the payload, not by the kind": {exportOf(policy, func(e *export) {
			e.Spec.Kind = service
			e.Labels = map[string]string{"sourceKind": service, "sourceName": "strict", "sourceNamespace": ""}
		}), `[{"op":"add","path":"/metadata/labels/sourceKind","value":"AntreaClusterNetworkPolicy"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.export.DeepCopy()
			next, patch := admission.MutateExport(admission.Request[export]{Operation: create, Object: c.export})
			got, _ := json.Marshal(patch)
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, c.export); diff != "" {
				t.Errorf("the request was changed: %s", diff)
			}
			if (next == nil) != (patch == nil) {
				t.Error("object and patch disagree")
			}
			if next != nil {
				if again, _ := admission.MutateExport(admission.Request[export]{Operation: create, Object: next}); again != nil {
					t.Error("the result is changed again")
				}
			}
		})
	}
}

// What preflight asks of stored exports is what admission asks of new ones.
func TestExportProblems(t *testing.T) {
	if got := admission.ExportProblems(exportOf(service)); got != nil {
		t.Errorf("a good export: %+v", got)
	}
	var ids []string
	for _, p := range admission.ExportProblems(exportOf(service, func(e *export) { e.Labels, e.Finalizers, e.Name = nil, nil, "x" })) {
		ids = append(ids, p.Rule.ID)
	}
	if want := []string{"ADM-RE-14", "ADM-RE-15", "ADM-RE-16", "ADM-RE-17", "ADM-RE-19"}; !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}
