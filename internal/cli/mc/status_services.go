package mc

import (
	"context"
	"encoding/json"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// services reads what a member exports and imports.
func (r *reading) services(ctx context.Context) error {
	var exports mcsv1beta1.ServiceExportList
	if err := r.listMCS(ctx, &exports, &mcsv1alpha1.ServiceExportList{}); err != nil {
		return err
	}
	var imports mcsv1beta1.ServiceImportList
	if err := r.listMCS(ctx, &imports, &mcsv1alpha1.ServiceImportList{}); err != nil {
		return err
	}
	var slices discoveryv1.EndpointSliceList
	if err := r.list(ctx, &slices, client.HasLabels{v1alpha1.LabelClusterSet, mcsv1beta1.LabelServiceName}); err != nil {
		return err
	}
	r.cluster.ServiceExports, r.cluster.ServiceImports, r.cluster.Slices = exports.Items, imports.Items, slices.Items
	return nil
}

// listMCS falls back to the older version of the MCS API, which is all that
// upstream's own CRDs serve. The schema of the two is the same.
func (r *reading) listMCS(ctx context.Context, list, older client.ObjectList) error {
	err := r.reader.List(ctx, list)
	if !meta.IsNoMatchError(err) {
		return r.tolerate(err)
	}
	if err := r.list(ctx, older); err != nil {
		return err
	}
	text, err := json.Marshal(older)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, list)
}
