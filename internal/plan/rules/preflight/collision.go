package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// importName is what the leader calls the import of an export (1.11); empty for
// the kinds whose imports cannot meet.
func importName(spec v1alpha1.ResourceExportSpec) string {
	switch spec.Kind {
	case v1alpha1.KindService, v1alpha1.KindEndpoints, v1alpha1.KindAntreaClusterNetworkPolicy:
	default:
		return ""
	}
	name := spec.Name + "-" + strings.ToLower(spec.Kind)
	if spec.Namespace != "" {
		name = spec.Namespace + "-" + name
	}
	return name
}

// importKind is the kind of an import for an export's.
func importKind(export string) string {
	if export == v1alpha1.KindService {
		return v1alpha1.KindServiceImport
	}
	return export
}

// tuple is what an export is of.
type tuple struct{ namespace, name, kind string }

func (t tuple) String() string { return t.kind + " " + t.namespace + "/" + t.name }

func compareTuples(a, b tuple) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
}

var importCollisions = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-12", Severity: rule.Warn, Title: "No two Services share an import",
		Why:    "Names of imports join Namespace and Service with a dash, so a-b/c and a/b-c meet. The first to come has the import; an upstream leader refuses the other for ever, and only the status of its export tells.",
		Remedy: "rename the Service or its Namespace in the members that were refused",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		exports, okE := need(r, e.Leader.source(), "the exports", e.Leader.Exports)
		imports, okI := need(r, e.Leader.source(), "the imports", e.Leader.Imports)
		if !okE || !okI {
			return
		}
		byName := map[string]map[tuple][]v1alpha1.ResourceExport{}
		for _, x := range exports {
			if name := importName(x.Spec); name != "" {
				if byName[name] == nil {
					byName[name] = map[tuple][]v1alpha1.ResourceExport{}
				}
				of := tuple{x.Spec.Namespace, x.Spec.Name, x.Spec.Kind}
				byName[name][of] = append(byName[name][of], x)
			}
		}
		for name, tuples := range byName {
			if len(tuples) > 1 && !allImported(tuples, imports) {
				r.fix(e.importCollision(name, tuples, imports))
			}
		}
	},
}

// allImported tells whether each tuple has an import of its own, as under a leader
// of ours with members of ours.
func allImported(tuples map[tuple][]v1alpha1.ResourceExport, imports []v1alpha1.ResourceImport) bool {
	for of := range tuples {
		if !slices.ContainsFunc(imports, func(i v1alpha1.ResourceImport) bool {
			return tuple{i.Spec.Namespace, i.Spec.Name, i.Spec.Kind} == tuple{of.namespace, of.name, importKind(of.kind)}
		}) {
			return false
		}
	}
	return true
}

func (e Evidence) importCollision(name string, tuples map[tuple][]v1alpha1.ResourceExport, imports []v1alpha1.ResourceImport) rule.Finding {
	all := slices.SortedFunc(maps.Keys(tuples), compareTuples)
	names := make([]string, len(all))
	f := rule.Finding{Objects: e.Leader.objects("ResourceImport", []string{name})}
	for i, of := range all {
		names[i] = of.String()
		for _, x := range tuples[of] {
			if refused(x) {
				f.Evidence = append(f.Evidence, fmt.Sprintf("ResourceExport %q is refused", x.Name))
			}
		}
	}
	for _, i := range imports {
		if i.Name == name {
			f.Evidence = append(f.Evidence, fmt.Sprintf("the import belongs to %s", tuple{i.Spec.Namespace, i.Spec.Name, i.Spec.Kind}))
		}
	}
	f.Message = fmt.Sprintf("%s lead to one import, %q", strings.Join(names, " and "), name)
	return f
}

// refused tells whether the leader would not merge an export.
func refused(x v1alpha1.ResourceExport) bool {
	return len(x.Status.Conditions) > 0 && x.Status.Conditions[0].Type == v1alpha1.ResourceFailure
}

var exportCollisions = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-13", Severity: rule.Warn, Title: "No two Services of a member share an export",
		Why:    "The second Service would write over the export of the first. A strict leader refuses that, and only the log of the member controller tells.",
		Remedy: "rename one of the Services, or move it to another Namespace",
		Source: "upgrade of Antrea Multi-cluster to v2.7, ADM-RE-9",
	},
	look: func(e Evidence, r *report) {
		for _, m := range e.Members {
			exported, ok := need(r, m.source(), "the ServiceExports", m.Exported)
			if !ok {
				continue
			}
			byName := map[string][]string{}
			for _, x := range exported {
				name := identity.JoinedName(x.NamespacedName)
				byName[name] = append(byName[name], x.String())
			}
			for _, services := range byName {
				slices.Sort(services)
				if services = slices.Compact(services); len(services) > 1 {
					r.fix(rule.Finding{
						Cluster: m.ID, Message: fmt.Sprintf("Services %s of %s have one export name", strings.Join(services, " and "), m.source()),
					})
				}
			}
		}
	},
}

var foreignCollisions = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-14", Severity: rule.Warn, Title: "No two members share an export",
		Why:    "With IDs of which one continues the other, two members can lead to one export name. The second is refused for ever, or takes the place of the first.",
		Remedy: "give one of the members another ID: lockstep mc rename",
		Source: "upgrade of Antrea Multi-cluster to v2.7, UPG-CHK-7",
	},
	look: func(e Evidence, r *report) {
		type owner struct {
			cluster string
			service types.NamespacedName
		}
		owners := map[string][]owner{}
		note := func(cluster string, service types.NamespacedName) {
			name, o := identity.ServiceExportName(cluster, service), owner{cluster, service}
			if !slices.Contains(owners[name], o) {
				owners[name] = append(owners[name], o)
			}
		}
		if exports, ok := need(r, e.Leader.source(), "the exports", e.Leader.Exports); ok {
			for _, x := range exports {
				if x.Spec.Kind == v1alpha1.KindService && x.Spec.ClusterID != "" {
					note(x.Spec.ClusterID, types.NamespacedName{Namespace: x.Spec.Namespace, Name: x.Spec.Name})
				}
			}
		}
		for _, m := range e.Members {
			exported, ok := need(r, m.source(), "the ServiceExports", m.Exported)
			for _, x := range exported {
				if ok {
					note(m.ID, x.NamespacedName)
				}
			}
		}
		for name, of := range owners {
			slices.SortFunc(of, func(a, b owner) int { return strings.Compare(a.cluster, b.cluster) })
			if of[0].cluster == of[len(of)-1].cluster {
				continue // of one member: UPG-CHK-13
			}
			f := rule.Finding{Cluster: of[len(of)-1].cluster, Objects: e.Leader.objects("ResourceExport", []string{name})}
			var parts []string
			for _, o := range of {
				parts = append(parts, fmt.Sprintf("%s of member %q", o.service, o.cluster))
			}
			f.Message = fmt.Sprintf("Services %s lead to one export, %q", strings.Join(parts, " and "), name)
			r.fix(f)
		}
	},
}

const (
	wireServiceName = 53 // antrea-mc- and the name are one Service name of 63
	objectName      = 253
)

var longNames = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-25", Severity: rule.Warn, Title: "Exported names can be imported",
		Why:    "An upstream importer puts ten characters before the name of a Service, which ends at 63. A longer one is never imported there. Our importers shorten it.",
		Remedy: "rename the Service to at most 53 characters",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		for _, m := range e.Members {
			exported, ok := need(r, m.source(), "the ServiceExports", m.Exported)
			if !ok {
				continue
			}
			for _, x := range exported {
				f := rule.Finding{Cluster: m.ID, Objects: []rule.Object{{Kind: "ServiceExport", Namespace: x.Namespace, Name: x.Name}}}
				if len(identity.EndpointsExportName(m.ID, x.NamespacedName)) > objectName {
					f.Message = fmt.Sprintf("the export of %s would have a name of more than %d characters", x.NamespacedName, objectName)
					r.fix(f)
				}
				if len(x.Name) <= wireServiceName {
					continue
				}
				f.Message = fmt.Sprintf("the name of Service %s has more than %d characters", x.NamespacedName, wireServiceName)
				if e.upstreamImporters(r) {
					r.fix(f)
					continue
				}
				f.Severity, f.Remedy = rule.Info, "nothing is to be done while all members are our own"
				r.add(f)
			}
		}
	},
}

// upstreamImporters tells whether some member may run upstream's controller.
func (e Evidence) upstreamImporters(r *report) bool {
	return slices.ContainsFunc(e.Members, func(m Member) bool {
		controllers, ok := need(r, m.source(), "the controllers", m.Controllers)
		return !ok || slices.ContainsFunc(of("member", controllers), func(c Controller) bool { return c.Upstream })
	})
}
