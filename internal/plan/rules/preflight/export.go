package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

func exportObject(x v1alpha1.ResourceExport) []rule.Object {
	return []rule.Object{{Kind: "ResourceExport", Namespace: x.Namespace, Name: x.Name}}
}

var doomedExports = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-15", Severity: rule.Warn, Title: "Exports pass the checks of a strict leader",
		Why:    "Admission refuses every update of an export that breaks a rule. It stays as it is, and no change of its Service arrives any more.",
		Remedy: "delete the export; its member writes it anew",
		Source: "upgrade of Antrea Multi-cluster to v2.7, ADM-RE-10 to ADM-RE-19",
	},
	look: func(e Evidence, r *report) {
		exports, ok := need(r, e.Leader.source(), "the exports", e.Leader.Exports)
		if !ok {
			return
		}
		for _, x := range exports {
			if x.Spec.ClusterID == "" && !slices.Contains([]string{v1alpha1.KindService, v1alpha1.KindEndpoints, v1alpha1.KindClusterInfo, v1alpha1.KindLabelIdentity}, x.Spec.Kind) {
				continue // an administrator's
			}
			problems := admission.ExportProblems(&x)
			if len(problems) == 0 {
				continue
			}
			f := rule.Finding{
				Cluster: x.Spec.ClusterID, Objects: exportObject(x),
				Message: fmt.Sprintf("updates of ResourceExport %q would be refused: %s (%s)", x.Name, problems[0].Why, problems[0].Rule.ID),
			}
			for _, p := range problems {
				f.Evidence = append(f.Evidence, p.Rule.ID+": "+p.Why)
			}
			if unlabelledInfo(x) {
				f.Remedy = "nothing is to be done: members before v2.7 write it without labels, and mend it when they are upgraded"
				r.warn(f)
				continue
			}
			r.fix(f)
		}
	},
}

// unlabelledInfo tells ClusterInfo exports as they were before v2.7.
func unlabelledInfo(x v1alpha1.ResourceExport) bool {
	return x.Spec.Kind == v1alpha1.KindClusterInfo && x.Labels[v1alpha1.LabelSourceClusterID] == "" && x.Labels[v1alpha1.LabelSourceKind] == ""
}

var orphans = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-22", Severity: rule.Warn, Title: "Nothing was left behind",
		Why:    "What has no owner any more is served as if it had one: traffic goes to a cluster that left long ago.",
		Remedy: "delete it, after a look at why it stayed",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-2, WK-14, WK-36",
	},
	look: func(e Evidence, r *report) {
		exports, okE := need(r, e.Leader.source(), "the exports", e.Leader.Exports)
		imports, okI := need(r, e.Leader.source(), "the imports", e.Leader.Imports)
		announces, okA := need(r, e.Leader.source(), "the announces", e.Leader.Announces)
		if okE && okI {
			orphanImports(r, e.Leader, exports, imports)
		}
		if okE && okA {
			orphanExports(r, exports, announces)
		}
		if okA {
			foreignFinalizers(r, announces)
		}
		for _, m := range e.Members {
			if imported, ok := need(r, m.source(), "what was imported", m.Imported); ok && okI {
				orphanObjects(r, m, imported, imports)
			}
		}
	},
}

func orphanImports(r *report, l Leader, exports []v1alpha1.ResourceExport, imports []v1alpha1.ResourceImport) {
	offered := map[string]bool{}
	for _, x := range exports {
		offered[offer(x.Spec)] = true
	}
	for _, i := range imports {
		if !offered[i.Spec.Kind+"/"+importKey(i.Spec)] {
			r.fix(rule.Finding{Objects: l.objects("ResourceImport", []string{i.Name}), Message: fmt.Sprintf("ResourceImport %q has no export", i.Name)})
		}
	}
}

// offer is what an export makes the leader write, as importKey reads it.
func offer(spec v1alpha1.ResourceExportSpec) string {
	switch spec.Kind {
	case v1alpha1.KindClusterInfo:
		return spec.Kind + "/" + spec.ClusterID
	case v1alpha1.KindLabelIdentity:
		if spec.LabelIdentity != nil {
			return spec.Kind + "/" + spec.LabelIdentity.NormalizedLabel
		}
	}
	return importKind(spec.Kind) + "/" + spec.Namespace + "/" + spec.Name
}

func importKey(spec v1alpha1.ResourceImportSpec) string {
	switch {
	case spec.Kind == v1alpha1.KindClusterInfo && spec.ClusterInfo != nil:
		return spec.ClusterInfo.ClusterID
	case spec.Kind == v1alpha1.KindLabelIdentity && spec.LabelIdentity != nil:
		return spec.LabelIdentity.Label
	}
	return spec.Namespace + "/" + spec.Name
}

func orphanExports(r *report, exports []v1alpha1.ResourceExport, announces []v1alpha1.MemberClusterAnnounce) {
	members := map[string]bool{"": true}
	for _, a := range announces {
		members[a.ClusterID] = true
	}
	for _, x := range exports {
		if !members[x.Spec.ClusterID] {
			r.fix(rule.Finding{
				Cluster: x.Spec.ClusterID, Objects: exportObject(x),
				Message: fmt.Sprintf("ResourceExport %q belongs to cluster %q, which is no member", x.Name, x.Spec.ClusterID),
			})
		}
	}
}

func foreignFinalizers(r *report, announces []v1alpha1.MemberClusterAnnounce) {
	for _, a := range announces {
		for _, f := range a.Finalizers {
			if strings.HasPrefix(f, v1alpha1.FinalizerAnnouncePrefix) && f != v1alpha1.FinalizerAnnouncePrefix+a.ClusterID {
				r.fix(rule.Finding{
					Cluster: a.ClusterID, Objects: []rule.Object{announceObject(a)},
					Message: fmt.Sprintf("the announce of %q has a finalizer for another ID", a.ClusterID), Evidence: []string{f},
					Remedy: "take that finalizer off",
				})
			}
		}
	}
}

func orphanObjects(r *report, m Member, imported []Imported, imports []v1alpha1.ResourceImport) {
	wanted := map[string]bool{}
	for _, i := range imports {
		switch i.Spec.Kind {
		case v1alpha1.KindServiceImport:
			wanted["Service/"+i.Spec.Namespace+"/"+identity.ImportedServiceName(i.Spec.Name)] = true
		case v1alpha1.KindAntreaClusterNetworkPolicy:
			wanted["ClusterNetworkPolicy//"+identity.ImportedServiceName(i.Spec.Name)] = true
		}
	}
	of := setName(m.ClusterSets)
	for _, object := range imported {
		another := object.ClusterSet != "" && of != "" && object.ClusterSet != of
		if !another && !wanted[object.Kind+"/"+object.Namespace+"/"+object.Name] {
			r.fix(rule.Finding{
				Cluster: m.ID, Objects: []rule.Object{{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}},
				Message: fmt.Sprintf("%s %q of %s was imported and has no import any more", object.Kind, object.NamespacedName, m.source()),
			})
		}
	}
}
