package exporter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// eventLog is an event recorder that keeps the reasons.
type eventLog []string

func (l *eventLog) Eventf(_ runtime.Object, _ runtime.Object, kind, reason, _, _ string, _ ...any) {
	*l = append(*l, kind+" "+reason)
}

func TestWhatBecomesAnEvent(t *testing.T) {
	export := func(conditions ...metav1.Condition) *mcsv1beta1.ServiceExport {
		return &mcsv1beta1.ServiceExport{Status: mcsv1beta1.ServiceExportStatus{Conditions: conditions}}
	}
	valid := metav1.Condition{Type: "Valid", Status: "True", Reason: "Valid"}
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: status, Reason: reason}
	}
	waiting, silent, merged := ready("False", "Pending"), ready("Unknown", "Pending"), ready("True", "Exported")
	for name, tc := range map[string]struct {
		before, after *mcsv1beta1.ServiceExport
		want          []string
	}{
		"a new export that waits":              {export(), export(valid, waiting), nil},
		"then is merged":                       {export(valid, waiting), export(valid, merged), []string{"Normal Exported"}},
		"a new export that is merged":          {export(), export(valid, merged), []string{"Normal Exported"}},
		"a new export that nobody answers":     {export(), export(valid, silent), []string{"Normal Pending"}},
		"an export that is merged no more":     {export(valid, merged), export(valid, waiting), []string{"Normal Pending"}},
		"an export that the leader refuses":    {export(), export(valid, ready("False", "Failed")), []string{"Warning Failed"}},
		"an export whose state stays the same": {export(valid, waiting), export(valid, waiting), nil},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(eventLog)
			(&Reconciler{Events: log}).tell(t.Context(), tc.before, tc.after)
			if diff := cmp.Diff(tc.want, []string(*log)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
