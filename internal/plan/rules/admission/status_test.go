package admission_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

func TestExportStatus(t *testing.T) {
	plain := exportOf(service)
	failed := exportOf(service, func(e *export) {
		e.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceFailure, Status: "False"}}
	})
	for name, c := range map[string]verdictCase[export]{
		"the leader":                {update, controller, unbound(false), plain, failed, "WK-7", true},
		"an administrator":          {update, admin, stranger, plain, failed, "WK-7", true},
		"somebody else with rights": {update, person, stranger, plain, failed, "WK-7", true},
		"a member, its own":         {update, member, bound("harbor"), plain, failed, "WK-7", false},
		"a member, another's":       {update, member, bound("depot"), plain, failed, "WK-7", false},
		"a member without binding":  {update, member, unbound(true), plain, failed, "WK-7", false},
		"a member changes nothing":  {update, member, bound("depot"), failed, failed, "", true},
		"nobody knows who":          {update, member, unreadable, plain, failed, "WK-7", false},
		"an account that is gone":   {update, member, missing, plain, failed, "WK-7", false},
		"an unknown Role elsewhere": {update, elsewhere, unreadable, plain, failed, "WK-7", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t, admission.ExportStatus(c.request("x"), admission.StatusObserved{Area: place, Caller: c.caller}))
		})
	}
}

func TestImportStatus(t *testing.T) {
	type imported = v1alpha1.ResourceImport
	with := func(clusters ...string) *imported {
		i := &imported{}
		for _, c := range clusters {
			i.Status.ClusterStatuses = append(i.Status.ClusterStatuses, v1alpha1.ResourceImportClusterStatus{ClusterID: c})
		}
		return i
	}
	for name, c := range map[string]verdictCase[imported]{
		"the leader":             {update, controller, unbound(false), with("a"), with(), "WK-7", true},
		"its own entry added":    {update, member, bound("harbor"), with("a"), with("a", "harbor"), "", true},
		"its own entry removed":  {update, member, bound("harbor"), with("harbor", "a"), with("a"), "", true},
		"another's entry added":  {update, member, bound("harbor"), with("a"), with("a", "depot"), "WK-7", false},
		"another's entry gone":   {update, member, bound("harbor"), with("a", "harbor"), with("harbor"), "WK-7", false},
		"a member without an ID": {update, member, unbound(true), with(), with("a"), "WK-7", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t, admission.ImportStatus(c.request("x"), admission.StatusObserved{Area: place, Caller: c.caller}))
		})
	}
}

func TestSlice(t *testing.T) {
	type slice = discoveryv1.EndpointSlice
	of := func(cluster, name string, changes ...func(*slice)) *slice {
		s := &slice{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: area, Labels: map[string]string{
			"multicluster.kubernetes.io/source-cluster":   cluster,
			"multicluster.kubernetes.io/service-name":     "cart",
			"multicluster.lockstep.dev/service-namespace": "shop",
			"endpointslice.kubernetes.io/managed-by":      "multicluster.lockstep.dev",
			"service.kubernetes.io/service-proxy-name":    "multicluster.lockstep.dev",
		}}}
		for _, change := range changes {
			change(s)
		}
		return s
	}
	mine := of("harbor", "harbor.shop.cart.0")
	for name, c := range map[string]verdictCase[slice]{
		"its own":                     {create, member, bound("harbor"), nil, mine, "", true},
		"an update":                   {update, member, bound("harbor"), mine, mine, "", true},
		"a delete":                    {del, member, bound("harbor"), mine, nil, "", true},
		"the leader":                  {create, controller, unbound(false), nil, mine, "ADM-ES-1", true},
		"Kubernetes":                  {create, sa("kube-system", "endpointslice-controller"), stranger, nil, of("", "webhook-1"), "ADM-ES-1", true},
		"a member without binding":    {create, member, unbound(true), nil, mine, "ADM-ES-1", false},
		"an empty binding":            {create, member, bound(""), nil, of("", ".shop.cart.0"), "ADM-ES-1", false},
		"another's, updated":          {update, member, bound("depot"), mine, of("depot", "harbor.shop.cart.0"), "ADM-ES-2", false},
		"another's, deleted":          {del, member, bound("depot"), mine, nil, "ADM-ES-2", false},
		"in the name of another":      {create, member, bound("harbor"), nil, of("depot", "depot.shop.cart.0"), "ADM-ES-3", false},
		"for proxies of the leader":   {create, member, bound("harbor"), nil, of("harbor", "harbor.shop.cart.0", func(s *slice) { delete(s.Labels, "service.kubernetes.io/service-proxy-name") }), "ADM-ES-3", false},
		"for a Service of the leader": {create, member, bound("harbor"), nil, of("harbor", "harbor.shop.cart.0", func(s *slice) { s.Labels["kubernetes.io/service-name"] = "webhook" }), "ADM-ES-3", false},
		"under the name of another":   {create, member, bound("harbor"), nil, of("harbor", "depot.shop.cart.0"), "ADM-ES-4", false},
		"without a number":            {create, member, bound("harbor"), nil, of("harbor", "harbor.shop.cart.x"), "ADM-ES-4", false},
		"of a Namespace with dots":    {create, member, bound("harbor"), nil, of("harbor", "harbor.a.b.cart.0", func(s *slice) { s.Labels["multicluster.lockstep.dev/service-namespace"] = "a.b" }), "ADM-ES-4", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t, admission.Slice(c.request("x"), admission.StatusObserved{Area: place, Caller: c.caller}))
		})
	}
}

// A member's Lease is bound to its ID by its name; nobody else's is, nor is the
// one by which the leader's replicas elect.
//
// covers: ADM-LS-1
func TestLease(t *testing.T) {
	type lease = coordinationv1.Lease
	of := func(name string) *lease { return &lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: area}} }
	mine, election := of("lockstep-member-harbor"), of("lockstep-leader")
	for name, c := range map[string]verdictCase[lease]{
		"its own":                     {create, member, bound("harbor"), nil, mine, "", true},
		"an update":                   {update, member, bound("harbor"), mine, mine, "", true},
		"another's":                   {create, member, bound("depot"), nil, mine, "ADM-LS-1", false},
		"another's, updated":          {update, member, bound("depot"), mine, mine, "ADM-LS-1", false},
		"another's, deleted":          {del, member, bound("depot"), mine, nil, "ADM-LS-1", false},
		"whose ID continues its own":  {create, member, bound("harbor"), nil, of("lockstep-member-harbor-2"), "ADM-LS-1", false},
		"the leader's election":       {update, member, bound("harbor"), election, election, "ADM-LS-1", false},
		"an election that is new":     {create, member, bound("harbor"), nil, election, "ADM-LS-1", false},
		"a cluster of that name":      {update, member, bound("leader"), election, election, "ADM-LS-1", false},
		"a member without binding":    {create, member, unbound(true), nil, mine, "ADM-LS-1", false},
		"an empty binding":            {create, member, bound(""), nil, of("lockstep-member-"), "ADM-LS-1", false},
		"the leader":                  {update, controller, unbound(false), election, election, "ADM-LS-1", true},
		"the leader cleans up":        {del, controller, unbound(false), mine, nil, "ADM-LS-1", true},
		"an administrator":            {update, admin, stranger, mine, mine, "ADM-LS-1", true},
		"whoever has a right of RBAC": {create, sa("tools", "driver"), stranger, nil, of("driver"), "ADM-LS-1", true},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t, admission.Lease(c.request("x"), admission.StatusObserved{Area: place, Caller: c.caller}))
		})
	}
}
