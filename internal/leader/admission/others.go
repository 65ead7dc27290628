package admission

import (
	"context"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/webhook"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

// indexLabelHash finds the exports of one label hash.
const indexLabelHash = "admission.labelHash"

// Index makes what observeOthers looks up cheap.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &v1alpha1.ResourceExport{}, indexLabelHash, func(o client.Object) []string {
		if e, ok := o.(*v1alpha1.ResourceExport); ok && e.Spec.Kind == v1alpha1.KindLabelIdentity && e.Spec.LabelIdentity != nil {
			return []string{identity.LabelHash(e.Spec.LabelIdentity.NormalizedLabel)}
		}
		return nil
	})
}

// observeOthers reads what an export is compared with. A cache will do: of two
// that are written at the same moment no webhook sees the other, whatever it reads;
// the loops that merge them tell then.
func (d *Decider) observeOthers(ctx context.Context, r admission.Request[v1alpha1.ResourceExport], o *admission.ExportObserved) {
	if r.Object == nil {
		return
	}
	spec := r.Object.Spec
	switch spec.Kind {
	case v1alpha1.KindClusterInfo:
		claims, err := d.claims(ctx, spec.ClusterID)
		o.Claims = webhook.Known(ctx, claims, err)
	case v1alpha1.KindLabelIdentity:
		if spec.LabelIdentity != nil {
			label, err := d.sameHash(ctx, spec.LabelIdentity.NormalizedLabel)
			o.SameHash = webhook.Known(ctx, label, err)
		}
	}
}

// claims are the networks of all members but one.
func (d *Decider) claims(ctx context.Context, but string) ([]netip.Prefix, error) {
	var exports v1alpha1.ResourceExportList
	if err := d.Cached.List(ctx, &exports, client.InNamespace(d.Area.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var claims []netip.Prefix
	for i := range exports.Items {
		if spec := &exports.Items[i].Spec; spec.Kind == v1alpha1.KindClusterInfo && spec.ClusterID != but {
			claims = append(claims, admission.Claims(spec.ClusterInfo)...)
		}
	}
	return claims, nil
}

// sameHash is another label that an export of the same hash stands for, or the
// label itself, or nothing when there is no export of that hash.
func (d *Decider) sameHash(ctx context.Context, label string) (string, error) {
	var exports v1alpha1.ResourceExportList
	err := d.Cached.List(ctx, &exports, client.InNamespace(d.Area.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{indexLabelHash: identity.LabelHash(label)})
	if err != nil {
		return "", err
	}
	known := ""
	for i := range exports.Items {
		if known = exports.Items[i].Spec.LabelIdentity.NormalizedLabel; known != label {
			break
		}
	}
	return known, nil
}
