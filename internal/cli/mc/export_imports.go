package mc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Outcomes of a Service in one importing cluster.
const (
	Imported  Outcome = "imported"
	Withdrawn Outcome = "withdrawn"
	// Awaited: it comes when the cluster has the Namespace.
	Awaited Outcome = "awaited"
)

// awaitImports waits until every cluster that is looked at has what this one
// exports (there), or has it no longer. Without the ID of this cluster nobody can
// tell its share from others', so nothing is waited for.
func (r *exportRun) awaitImports(ctx context.Context, there bool) error {
	switch {
	case r.unread:
		r.Progress.sayf("these credentials may not read the ClusterSet, so the importing clusters are not looked at")
		return nil
	case r.cluster == "":
		r.Progress.sayf("this cluster is no member of a ClusterSet, so there is no importing cluster to look at")
		return nil
	}
	for _, importer := range append([]Importer{{Name: "this cluster", Reader: r.client}}, r.Importers...) {
		r.Progress.sayf("waiting up to %s for %s", r.Wait, importer.Name)
		var seen importSeen
		had := !r.none // a share of this cluster
		err := until(ctx, r.Wait, func(ctx context.Context) (done bool, err error) {
			seen, err = r.look(ctx, importer)
			had = had || seen.has
			return err == nil && (seen.has == there || there && seen.noNamespace), err
		})
		switch {
		case errors.Is(err, errNotYet):
			return latef("%s, after %s", seen.sentence(r.cluster, importer.Name, there), r.Wait)
		case err != nil:
			return explain(fmt.Sprintf("cannot look into %s", importer.Name), err)
		}
		r.did("serviceimport", seen.outcome(there, had), strings.Join(nonEmpty(importer.Name, seen.note(r.Namespace, there)), ": "))
	}
	return nil
}

// importSeen is what one cluster has of the Service.
type importSeen struct {
	has         bool // the share of the exporting cluster
	noNamespace bool
	addresses   []string
	from        []string // cluster IDs
}

func (r *exportRun) look(ctx context.Context, importer Importer) (importSeen, error) {
	imported, err := find[mcsv1beta1.ServiceImport](ctx, importer, r.tuple())
	if err != nil {
		return importSeen{}, err
	}
	if imported == nil {
		ns, err := find[corev1.Namespace](ctx, importer, client.ObjectKey{Name: r.Namespace})
		return importSeen{noNamespace: err == nil && ns == nil}, nil
	}
	seen := importSeen{addresses: imported.Spec.IPs}
	for _, c := range imported.Status.Clusters {
		seen.from = append(seen.from, c.Cluster)
	}
	seen.has = slices.Contains(seen.from, r.cluster)
	return seen, nil
}

// sentence says what was waited for in vain, and what is there instead.
func (s importSeen) sentence(exporter, importer string, there bool) string {
	switch {
	case !there:
		return fmt.Sprintf("%s still imports the share of cluster %q", importer, exporter)
	case len(s.from) == 0:
		return fmt.Sprintf("%s has no import of cluster %q yet", importer, exporter)
	default:
		return fmt.Sprintf("%s has the Service from %s, and not yet from cluster %q", importer, strings.Join(s.from, ", "), exporter)
	}
}

// outcome tells, of a cluster that had a share of the exporting one or not, what
// became of it.
func (s importSeen) outcome(there, had bool) Outcome {
	switch {
	case !there && !had:
		return Missing
	case !there:
		return Withdrawn
	case s.has:
		return Imported
	default:
		return Awaited
	}
}

func (s importSeen) note(namespace string, there bool) string {
	switch {
	case there && s.noNamespace:
		return fmt.Sprintf("it has no Namespace %q", namespace)
	case there:
		return cmp.Or(strings.Join(s.addresses, ", "), "headless")
	case len(s.from) > 0:
		return "still exported by " + strings.Join(s.from, ", ")
	default:
		return ""
	}
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
