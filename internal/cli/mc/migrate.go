package mc

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

const (
	kindCRD       = "customresourcedefinition"
	clusterSetCRD = "clustersets.multicluster.crd.antrea.io"
	claimCRD      = "clusterclaims.multicluster.crd.antrea.io"
)

// Outcomes of a conversion that is only shown.
const (
	ToConfigure Outcome = "to be configured"
	ToDelete    Outcome = "to be deleted"
)

// MigrateLegacyOptions say how the remains of before v1.13 are converted.
type MigrateLegacyOptions struct {
	// ClusterID of this cluster, for a ClusterSet without ID and claim.
	ClusterID string
	// AcceptNames: the present names of ClusterSets are right, whatever claims say.
	AcceptNames bool
	// DeleteClaims removes the kind ClusterClaim with its objects.
	DeleteClaims bool
	// DryRun shows what would be done.
	DryRun bool
	// Confirm is asked once, before the first write; nil means yes.
	Confirm  func(difference string) error
	Progress Progress
}

// MigrateLegacy converts what versions before v1.13 left in one cluster: gives
// each ClusterSet its ID, stores it as v1alpha2, forgets that it was ever written
// as v1alpha1, and may remove ClusterClaims. Everything is planned before the first
// write, and a run that was stopped is continued by repeating it.
func MigrateLegacy(ctx context.Context, c client.Client, opts MigrateLegacyOptions) ([]Touched, error) {
	const what = "cannot convert what is left of before v1.13"
	seen, crd, err := observeLegacy(ctx, c, opts)
	if err != nil {
		return nil, explain(what, err)
	}
	plan, err := clusterset.PlanLegacy(seen)
	if err != nil {
		return nil, err
	}
	if opts.DryRun {
		return toBeDone(plan), nil
	}
	if difference := describeLegacy(plan, seen); difference != "" && opts.Confirm != nil {
		if err := opts.Confirm(difference); err != nil {
			return nil, err
		}
	}
	touched, err := convertLegacy(ctx, c, plan, crd, opts)
	return touched, explain(what, err)
}

func observeLegacy(ctx context.Context, c client.Reader, opts MigrateLegacyOptions) (seen clusterset.LegacyObserved, crd *apiextensionsv1.CustomResourceDefinition, err error) {
	seen = clusterset.LegacyObserved{ClusterID: opts.ClusterID, AcceptNames: opts.AcceptNames, DeleteClaims: opts.DeleteClaims}
	crd = &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: clusterSetCRD}, crd); err != nil {
		return seen, nil, err
	}
	seen.Stored = crd.Status.StoredVersions
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			seen.Storage = v.Name
		}
	}
	var sets v1alpha2.ClusterSetList
	err = c.List(ctx, &sets)
	switch unserved := meta.IsNoMatchError(err) || apierrors.IsNotFound(err); {
	case unserved && seen.Storage == v1alpha2.GroupVersion.Version: // else the plan refuses
		// Nobody may be told that nothing is stored as v1alpha1 who has not read what is.
		return seen, nil, failed("cannot read the ClusterSets of this cluster", "repeat the command in a moment; should it stay so, install the CRDs of this release: lockstep mc deploy",
			fmt.Errorf("CRD %q is there, and ClusterSets are not served as %s", clusterSetCRD, v1alpha2.GroupVersion.Version))
	case err != nil && !unserved:
		return seen, nil, err
	}
	var claims v1alpha2.ClusterClaimList
	switch err := c.List(ctx, &claims); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
	case err != nil:
		return seen, nil, err
	default:
		seen.ClaimsServed = true
	}
	seen.Sets, seen.Claims = sets.Items, claims.Items
	return seen, crd, nil
}

// convertLegacy carries a plan out: ClusterSets, then the CRD, whose promise is
// true only now, then claims, which nobody needs any more.
func convertLegacy(ctx context.Context, c client.Client, plan clusterset.LegacyPlan, crd *apiextensionsv1.CustomResourceDefinition, opts MigrateLegacyOptions) ([]Touched, error) {
	var touched []Touched
	for _, set := range plan.Sets {
		// Also when nothing differs: writing it stores it as v1alpha2.
		if err := c.Update(ctx, set.After); err != nil {
			return touched, err
		}
		opts.Progress.sayf("ClusterSet %q of Namespace %q is stored as v1alpha2", set.After.Name, set.After.Namespace)
		touched = append(touched, setTouched(set, apply.Configured))
	}
	if plan.Stored != nil {
		err := retry.OnError(retry.DefaultRetry, apierrors.IsConflict, func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			crd.Status.StoredVersions = plan.Stored
			return c.Status().Update(ctx, crd)
		})
		if err != nil {
			return touched, err
		}
		touched = append(touched, Touched{Kind: kindCRD, Name: clusterSetCRD, Outcome: apply.Configured, Note: storedNote(plan)})
	}
	if plan.DeleteClaims {
		gone := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: claimCRD}}
		if err := client.IgnoreNotFound(c.Delete(ctx, gone)); err != nil {
			return touched, err
		}
		touched = append(touched, Touched{Kind: kindCRD, Name: claimCRD, Outcome: apply.Deleted})
	}
	return touched, nil
}

// toBeDone are the outcomes of a plan that is not carried out.
func toBeDone(plan clusterset.LegacyPlan) []Touched {
	var touched []Touched
	for _, set := range plan.Sets {
		touched = append(touched, setTouched(set, ToConfigure))
	}
	if plan.Stored != nil {
		touched = append(touched, Touched{Kind: kindCRD, Name: clusterSetCRD, Outcome: ToConfigure, Note: storedNote(plan)})
	}
	if plan.DeleteClaims {
		touched = append(touched, Touched{Kind: kindCRD, Name: claimCRD, Outcome: ToDelete})
	}
	return touched
}

func setTouched(set clusterset.LegacySet, outcome Outcome) Touched {
	note := strings.Join(set.Changes, "; ")
	if note == "" {
		note = "stored as v1alpha2"
	}
	return Touched{Kind: kindClusterSet, Namespace: set.Before.Namespace, Name: set.Before.Name, Outcome: outcome, Note: note}
}

func storedNote(plan clusterset.LegacyPlan) string {
	return "stored versions: " + strings.Join(plan.Stored, ", ")
}

// describeLegacy is the difference for somebody who has to say yes; empty when
// there is none.
func describeLegacy(plan clusterset.LegacyPlan, seen clusterset.LegacyObserved) string {
	var text strings.Builder
	for _, set := range plan.Sets {
		fmt.Fprintf(&text, "ClusterSet %s/%s\n", set.Before.Namespace, set.Before.Name)
		for _, line := range set.Changes {
			fmt.Fprintf(&text, "  %s\n", line)
		}
	}
	if plan.Stored != nil {
		fmt.Fprintf(&text, "CustomResourceDefinition %s\n  - status.storedVersions: %s\n  + status.storedVersions: %s\n",
			clusterSetCRD, strings.Join(seen.Stored, ", "), strings.Join(plan.Stored, ", "))
	}
	if plan.DeleteClaims {
		fmt.Fprintf(&text, "CustomResourceDefinition %s\n  - all of it, with %d ClusterClaims\n", claimCRD, len(seen.Claims))
	}
	return text.String()
}
