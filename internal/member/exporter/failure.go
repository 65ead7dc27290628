package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// failed says on the ServiceExport that the export did not reach the leader: it
// was refused, or there was no answer, in which case what the leader took before
// is still served.
func failed(conditions []metav1.Condition, server string, failure error) []metav1.Condition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == string(mcsv1beta1.ServiceExportConditionReady) {
			c.Status, c.Reason, c.Message = verdict(server, failure)
		}
	}
	return conditions
}

// verdict on an export by what its publication failed with. The same failure
// gives the same text, because each new text is a write.
func verdict(server string, failure error) (metav1.ConditionStatus, string, string) {
	refusal := refusalIn(failure)
	if refusal == nil {
		return metav1.ConditionUnknown, string(mcsv1beta1.ServiceExportReasonPending),
			fmt.Sprintf("the leader at %s does not answer; the export is tried again", server)
	}
	message := fmt.Sprintf("the leader at %s does not take the export: ", server)
	switch words := sentence(refusal.Message); refusal.Reason {
	case metav1.StatusReasonInvalid:
		message += words + "; change that in the Service or its endpoints"
	case metav1.StatusReasonRequestEntityTooLarge:
		message += words + "; share the endpoints out among several Services, or export fewer labels and annotations"
	case metav1.StatusReasonForbidden:
		message += words + "; give this member a token with the rights of a member, by \"lockstep mc create membertoken\""
	case metav1.StatusReasonUnauthorized: // the API server says no more than that
		message += "it does not know the token of this member; make another by \"lockstep mc create membertoken\""
	default:
		// Answers about the API server itself; their words may tick.
		message += fmt.Sprintf("it answers %s; the export is tried again", cmp.Or(string(refusal.Reason), fmt.Sprintf("with status %d", refusal.Code)))
	}
	return metav1.ConditionFalse, string(mcsv1beta1.ServiceExportReasonFailed), message
}

// refusalIn is the first answer of an API server among joined errors that does
// not only mean that the view was old.
func refusalIn(err error) *metav1.Status {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		for _, one := range several.Unwrap() {
			if refusal := refusalIn(one); refusal != nil {
				return refusal
			}
		}
		return nil
	}
	var answer apierrors.APIStatus
	if err == nil || apply.IsStale(err) || !errors.As(err, &answer) {
		return nil
	}
	return new(answer.Status())
}

// longest is how many bytes of an answer a condition repeats. A refusal lists
// every field that is wrong; the first ones tell what kind of thing it is.
const longest = 1024

// sentence puts an answer on one line.
func sentence(answer string) string {
	line := strings.TrimRight(strings.Join(strings.Fields(answer), " "), ".;")
	if len(line) <= longest {
		return line
	}
	end := longest
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}
