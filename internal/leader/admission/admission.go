package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/webhook"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

// Paths of the wire; the last three are ours.
const (
	pathMutateExport = "/mutate-multicluster-crd-antrea-io-v1alpha1-resourceexport"
	pathAnnounce     = "/validate-multicluster-crd-antrea-io-v1alpha1-memberclusterannounce"
	pathExport       = "/validate-multicluster-crd-antrea-io-v1alpha1-resourceexport"
	pathImport       = "/validate-multicluster-crd-antrea-io-v1alpha1-resourceimport"
	pathSlice        = "/validate-discovery-k8s-io-v1-endpointslice"
	pathLease        = "/validate-coordination-k8s-io-v1-lease"
)

// Decider decides about the common area.
type Decider struct {
	// Live reads past every cache; Cached does not.
	Live, Cached client.Reader
	Area         admission.Area
	Events       events.EventRecorder
	Meter        webhook.Meter
}

// Handler serves all webhooks of a leader.
func (d *Decider) Handler() http.Handler {
	return webhook.Handler(map[string]webhook.Decide{
		pathMutateExport:       mutateExport,
		pathAnnounce:           webhook.Verdict(d.announce),
		pathExport:             webhook.Verdict(d.export),
		pathImport:             webhook.Verdict(d.importStatus),
		pathSlice:              webhook.Verdict(d.slice),
		pathLease:              webhook.Verdict(d.lease),
		webhook.PathClusterSet: webhook.ClusterSets(d.Live, d.Area.Namespace, true),
	}, d.Meter)
}

func mutateExport(_ context.Context, r *admissionv1.AdmissionRequest) webhook.Answer {
	_, patch := admission.MutateExport(admission.Decode[v1alpha1.ResourceExport](r))
	return webhook.Answer{Verdict: admission.Verdict{Allowed: true}, Patch: patch}
}

func (d *Decider) announce(ctx context.Context, r *admissionv1.AdmissionRequest) admission.Verdict {
	o := admission.AnnounceObserved{Area: d.Area, Caller: d.caller(ctx, r)}
	if r.Operation == admissionv1.Create {
		var sets v1alpha2.ClusterSetList
		err := d.Live.List(ctx, &sets, client.InNamespace(d.Area.Namespace))
		o.ClusterSets = webhook.Known(ctx, pointers(sets.Items), err)
		accounts, err := d.accounts(ctx)
		o.Accounts = webhook.Known(ctx, accounts, err)
	}
	return admission.Announce(admission.Decode[v1alpha1.MemberClusterAnnounce](r), o)
}

func (d *Decider) export(ctx context.Context, r *admissionv1.AdmissionRequest) admission.Verdict {
	request := admission.Decode[v1alpha1.ResourceExport](r)
	if r.SubResource != "" {
		return admission.ExportStatus(request, admission.StatusObserved{Area: d.Area, Caller: d.caller(ctx, r)})
	}
	o := admission.ExportObserved{Area: d.Area, Caller: d.caller(ctx, r)}
	d.observeOthers(ctx, request, &o)
	verdict := admission.Export(request, o)
	if d.Area.Policy.TrustUnbound && verdict.Allowed {
		d.tellTrusted(ctx, request, o)
	}
	return verdict
}

func (d *Decider) importStatus(ctx context.Context, r *admissionv1.AdmissionRequest) admission.Verdict {
	o := admission.StatusObserved{Area: d.Area, Caller: d.caller(ctx, r)}
	return admission.ImportStatus(admission.Decode[v1alpha1.ResourceImport](r), o)
}

func (d *Decider) slice(ctx context.Context, r *admissionv1.AdmissionRequest) admission.Verdict {
	o := admission.StatusObserved{Area: d.Area, Caller: d.caller(ctx, r)}
	return admission.Slice(admission.Decode[discoveryv1.EndpointSlice](r), o)
}

func (d *Decider) lease(ctx context.Context, r *admissionv1.AdmissionRequest) admission.Verdict {
	o := admission.StatusObserved{Area: d.Area, Caller: d.caller(ctx, r)}
	return admission.Lease(admission.Decode[coordinationv1.Lease](r), o)
}

// tellTrusted makes every use of a credential that is only trusted for the time of
// a migration visible, on the ClusterSet whose administrator allowed it.
func (d *Decider) tellTrusted(ctx context.Context, r admission.Request[v1alpha1.ResourceExport], o admission.ExportObserved) {
	o.Policy.TrustUnbound = false
	if r.DryRun || admission.Export(r, o).Rule != "WK-32" {
		return
	}
	log.FromContext(ctx).Info("Trusted a credential that is bound to no cluster ID", "user", r.User.Username)
	var sets v1alpha2.ClusterSetList
	if err := d.Cached.List(ctx, &sets, client.InNamespace(d.Area.Namespace)); err != nil || len(sets.Items) == 0 {
		return // the log has it
	}
	d.Events.Eventf(&sets.Items[0], nil, corev1.EventTypeWarning, "UnboundCredentialTrusted", "Admit",
		"%q wrote an export with a credential that is bound to no cluster ID, which the leader is configured to trust (WK-32); give that member a token of its own: lockstep mc create membertoken", r.User.Username)
}

func pointers[T any](items []T) []*T {
	list := make([]*T, 0, len(items))
	for i := range items {
		list = append(list, &items[i])
	}
	return list
}

// accounts are those of the common area, with the cluster IDs they are bound to.
func (d *Decider) accounts(ctx context.Context) ([]admission.Account, error) {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccountList"))
	if err := d.Live.List(ctx, &list, client.InNamespace(d.Area.Namespace)); err != nil {
		return nil, err
	}
	accounts := make([]admission.Account, 0, len(list.Items))
	for i := range list.Items {
		accounts = append(accounts, admission.AccountOf(list.Items[i].Name, list.Items[i].Annotations))
	}
	return accounts, nil
}
