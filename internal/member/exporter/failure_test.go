package exporter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestVerdict(t *testing.T) {
	resource := schema.GroupResource{Group: "multicluster.crd.antrea.io", Resource: "resourceexports"}
	kind := schema.GroupKind{Group: resource.Group, Kind: "ResourceExport"}
	invalid := apierrors.NewInvalid(kind, "east-shop-cart-service", field.ErrorList{field.Invalid(field.NewPath("spec", "name"), "x", "is\ntoo odd.")})
	forbidden := apierrors.NewForbidden(resource, "east-shop-cart-service", errors.New("no rights"))
	conflict := apierrors.NewConflict(resource, "east-shop-cart-service", errors.New("changed"))
	const refuses = "the leader at https://leader does not take the export: "
	for name, tc := range map[string]struct {
		failure        error
		status, reason string
		message        string
	}{
		"invalid": {
			fmt.Errorf("cannot create it: %w", invalid), "False", "Failed",
			refuses + `ResourceExport.multicluster.crd.antrea.io "east-shop-cart-service" is invalid: spec.name: Invalid value: "x": is too odd` +
				"; change that in the Service or its endpoints",
		},
		"forbidden": {
			forbidden, "False", "Failed",
			refuses + `resourceexports.multicluster.crd.antrea.io "east-shop-cart-service" is forbidden: no rights` +
				`; give this member a token with the rights of a member, by "lockstep mc create membertoken"`,
		},
		"too large": {
			apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "False", "Failed",
			refuses + "Request entity too large: limit is 3145728" +
				"; share the endpoints out among several Services, or export fewer labels and annotations",
		},
		"a token that was revoked": {
			apierrors.NewUnauthorized("Unauthorized"), "False", "Failed",
			refuses + `it does not know the token of this member; make another by "lockstep mc create membertoken"`,
		},
		"an API server in trouble: its words may tick": {
			apierrors.NewInternalError(errors.New("took 3.2s")), "False", "Failed", refuses + "it answers InternalError; the export is tried again",
		},
		"an answer without a reason": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request is too large"}},
			"False", "Failed", refuses + "it answers with status 500; the export is tried again",
		},
		"a refusal beside a conflict": {
			errors.Join(conflict, fmt.Errorf("cannot update: %w", errors.Join(nil, forbidden))), "False", "Failed",
			refuses + `resourceexports.multicluster.crd.antrea.io "east-shop-cart-service" is forbidden: no rights` +
				`; give this member a token with the rights of a member, by "lockstep mc create membertoken"`,
		},
		"no answer": {context.DeadlineExceeded, "Unknown", "Pending", "the leader at https://leader does not answer; the export is tried again"},
	} {
		t.Run(name, func(t *testing.T) {
			status, reason, message := verdict("https://leader", tc.failure)
			if string(status) != tc.status || reason != tc.reason || message != tc.message {
				t.Errorf("got %s, %s: %s\nwant %s, %s: %s", status, reason, message, tc.status, tc.reason, tc.message)
			}
		})
	}
}

func TestSentenceEnds(t *testing.T) {
	long := sentence(strings.Repeat("ä", longest))
	if !strings.HasSuffix(long, "ä…") || len(long) > longest+len("…") {
		t.Errorf("it has %d bytes and ends with %q", len(long), long[len(long)-8:])
	}
}
