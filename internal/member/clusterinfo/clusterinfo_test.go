package clusterinfo

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// The member says that all its exports are in the common area when each was
// compared. A ClusterInfo that the leader's API server never takes is not waited
// for; one that it may take the next time is.
func TestWhatIsNeverTakenIsNotWaitedFor(t *testing.T) {
	kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "ResourceExport"}
	resource := schema.GroupResource{Group: kind.Group, Resource: "resourceexports"}
	invalid := apierrors.NewInvalid(kind, "east-clusterinfo", nil)
	for name, tc := range map[string]struct {
		failure error
		leaving bool
		want    bool
	}{
		"taken":                  {nil, false, true},
		"invalid":                {fmt.Errorf("cannot create it: %w", invalid), false, true},
		"too large":              {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), false, true},
		"from an old view":       {apierrors.NewConflict(resource, "east-clusterinfo", errors.New("changed")), false, false},
		"no rights yet":          {apierrors.NewForbidden(resource, "east-clusterinfo", errors.New("no")), false, false},
		"no answer":              {context.DeadlineExceeded, false, false},
		"the old one is leaving": {nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := observed{}
			if tc.leaving {
				seen.export.Gateway = &v1alpha1.Gateway{}
				seen.export.Export = &v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
			}
			if got := seen.compared(tc.failure); got != tc.want {
				t.Errorf("compared: %v", got)
			}
		})
	}
}
