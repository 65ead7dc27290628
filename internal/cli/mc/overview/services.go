package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Export is one ServiceExport of one member.
type Export struct {
	ClusterID string `json:"clusterID"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Valid     State  `json:"valid"`
	Ready     State  `json:"ready"`
	Conflict  State  `json:"conflict"`
}

// Import is one ServiceImport in one member.
type Import struct {
	// ClusterID of the member that imports.
	ClusterID string   `json:"clusterID"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	IPs       []string `json:"ips,omitempty"`
	// Sources are the clusters that export it.
	Sources []Source `json:"sources"`
	Ready   State    `json:"ready"`
}

// Source is one exporting cluster behind an import.
type Source struct {
	// ClusterID is "" for endpoints of which the leader does not say whose.
	ClusterID string `json:"clusterID"`
	// ReadyEndpoints that this member has of it.
	ReadyEndpoints int `json:"readyEndpoints"`
}

func (p *page) exports() []Export {
	rows := []Export{}
	for _, m := range p.memberships {
		for _, export := range m.cluster.ServiceExports {
			conditions := export.Status.Conditions
			row := Export{
				ClusterID: m.clusterID(), Namespace: export.Namespace, Name: export.Name,
				Valid:    stateOf(conditions, string(mcsv1beta1.ServiceExportConditionValid)),
				Ready:    stateOf(conditions, string(mcsv1beta1.ServiceExportConditionReady)),
				Conflict: stateOf(conditions, string(mcsv1beta1.ServiceExportConditionConflict)),
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b Export) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ClusterID, b.ClusterID))
	})
	conflicts := agreement{}
	for i, row := range rows {
		p.checkExport(row)
		if row.Conflict.isTrue() {
			conflicts.add(row.Conflict.why(), row.ClusterID)
		}
		if i+1 == len(rows) || rows[i+1].Namespace != row.Namespace || rows[i+1].Name != row.Name {
			for _, c := range conflicts.take() {
				p.problem("", fmt.Sprintf("export %s/%s of %s is in conflict", row.Namespace, row.Name, c.clusters()), c.why, "make the Service equal in all clusters that export it")
			}
		}
	}
	return rows
}

func (p *page) checkExport(row Export) {
	what := fmt.Sprintf("export %s/%s of cluster %q", row.Namespace, row.Name, row.ClusterID)
	switch {
	case row.Valid.Status == "":
		p.problem("", what+" was not looked at", "the ServiceExport has no conditions", "see that the member controller of that cluster runs")
	case !row.Valid.isTrue():
		p.problem("", what+" cannot be exported", row.Valid.why(), "correct the Service, or delete the ServiceExport")
	case row.Ready.Status != "" && !row.Ready.isTrue():
		p.problem("", what+" has not arrived", row.Ready.why(), "see the leader and the connection to it")
	}
}

func (p *page) imports() []Import {
	rows := []Import{}
	for _, m := range p.memberships {
		ready := readyEndpoints(m.cluster.Slices)
		for _, imported := range m.cluster.ServiceImports {
			rows = append(rows, Import{
				ClusterID: m.clusterID(), Namespace: imported.Namespace, Name: imported.Name,
				Type: string(imported.Spec.Type), IPs: imported.Spec.IPs,
				Sources: sources(imported, ready[tuple{imported.Namespace, imported.Name}]),
				Ready:   stateOf(imported.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)),
			})
		}
	}
	slices.SortFunc(rows, func(a, b Import) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ClusterID, b.ClusterID))
	})
	empty := agreement{}
	for i, row := range rows {
		if p.checkImport(row); row.empty() {
			empty.add("no cluster that exports it has a ready Pod", row.ClusterID)
		}
		if i+1 == len(rows) || rows[i+1].Namespace != row.Namespace || rows[i+1].Name != row.Name {
			for _, e := range empty.take() {
				p.problem("", fmt.Sprintf("import %s/%s in %s has no ready endpoint", row.Namespace, row.Name, e.clusters()), e.why, "see the Pods behind the Service in the clusters that export it")
			}
		}
	}
	return rows
}

// agreement is what several clusters say of one Service, so that a Service that fails
// everywhere is one line and not one for each cluster.
type agreement []saying

type saying struct {
	why string
	ids []string
}

func (a *agreement) add(why, id string) {
	for i := range *a {
		if (*a)[i].why == why {
			(*a)[i].ids = append((*a)[i].ids, id)
			return
		}
	}
	*a = append(*a, saying{why, []string{id}})
}

func (a *agreement) take() []saying {
	all := *a
	*a = nil
	return all
}

// clusters reads as in `of clusters "east", "west"`.
func (s saying) clusters() string {
	if len(s.ids) == 1 {
		return fmt.Sprintf("cluster %q", s.ids[0])
	}
	quoted := make([]string, len(s.ids))
	for i, id := range s.ids {
		quoted[i] = strconv.Quote(id)
	}
	return "clusters " + strings.Join(quoted, ", ")
}

// empty tells an import that is ready and leads nowhere.
func (i Import) empty() bool {
	if i.Ready.Status != "" && !i.Ready.isTrue() {
		return false // said already, with the reason
	}
	return len(i.Sources) > 0 && !slices.ContainsFunc(i.Sources, func(s Source) bool { return s.ReadyEndpoints > 0 })
}

func (p *page) checkImport(row Import) {
	if row.Ready.Status != "" && !row.Ready.isTrue() {
		p.problem("", fmt.Sprintf("import %s/%s in cluster %q is not ready", row.Namespace, row.Name, row.ClusterID), row.Ready.why(),
			"do what the reason asks for; the member controller tries again by itself")
	}
}

type tuple struct{ namespace, name string }

// readyEndpoints counts, per import and exporting cluster, distinct addresses.
func readyEndpoints(all []discoveryv1.EndpointSlice) map[tuple]map[string]int {
	type address struct {
		tuple
		source, ip string
	}
	seen := map[address]bool{}
	counts := map[tuple]map[string]int{}
	for _, s := range all {
		of := tuple{s.Namespace, s.Labels[mcsv1beta1.LabelServiceName]}
		source := s.Labels[mcsv1beta1.LabelSourceCluster]
		if counts[of] == nil {
			counts[of] = map[string]int{}
		}
		counts[of][source] += 0
		for _, endpoint := range s.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			for _, ip := range endpoint.Addresses {
				if key := (address{of, source, ip}); ready && !seen[key] {
					seen[key] = true
					counts[of][source]++
				}
			}
		}
	}
	return counts
}

// sources joins the clusters the import names with those that have slices.
func sources(imported mcsv1beta1.ServiceImport, ready map[string]int) []Source {
	counts := map[string]int{}
	for _, c := range imported.Status.Clusters {
		counts[c.Cluster] = 0
	}
	for cluster, n := range ready {
		counts[cluster] = n
	}
	list := []Source{}
	for _, cluster := range sortedKeys(counts) {
		list = append(list, Source{cluster, counts[cluster]})
	}
	return list
}
