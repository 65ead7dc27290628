package webhook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

// maxBytes bounds a review: two objects of at most 3 MiB each, which is what an
// API server takes, and what it says about them.
const maxBytes = 8 << 20

// Answer is a verdict, and for a mutating webhook what to change.
type Answer struct {
	admission.Verdict
	Patch []admission.Patch
}

// Decide answers one request. It reads what it needs, and calls a rule.
type Decide func(context.Context, *admissionv1.AdmissionRequest) Answer

// Verdict is Decide for a webhook that only validates.
func Verdict(decide func(context.Context, *admissionv1.AdmissionRequest) admission.Verdict) Decide {
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) Answer {
		return Answer{Verdict: decide(ctx, r)}
	}
}

// Meter counts verdicts.
type Meter interface {
	Admitted(r *admissionv1.AdmissionRequest, v admission.Verdict)
}

// Handler serves each Decide at its path. What is no review is refused; so is
// everything at other paths.
func Handler(decisions map[string]Decide, meter Meter) http.Handler {
	mux := http.NewServeMux()
	for path, decide := range decisions {
		mux.Handle("POST "+path, review(decide, meter))
	}
	return mux
}

func review(decide Decide, meter Meter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
		if err != nil {
			http.Error(w, "the review cannot be read", http.StatusRequestEntityTooLarge)
			return
		}
		var asked admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &asked); err != nil || asked.Request == nil {
			http.Error(w, "this is no AdmissionReview with a request", http.StatusBadRequest)
			return
		}
		answer := decide(r.Context(), asked.Request)
		meter.Admitted(asked.Request, answer.Verdict)
		w.Header().Set("Content-Type", "application/json")
		// A caller that is gone has no use for an error.
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: asked.TypeMeta, Response: respond(asked.Request, answer)})
	})
}

func respond(r *admissionv1.AdmissionRequest, a Answer) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{UID: r.UID, Allowed: a.Allowed}
	if !a.Allowed {
		response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: a.Code, Message: a.Message, Reason: reasons[a.Code]}
		return response
	}
	if len(a.Patch) > 0 {
		patch, err := json.Marshal(a.Patch)
		if err != nil {
			return &admissionv1.AdmissionResponse{UID: r.UID, Result: &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "the change cannot be written down",
			}}
		}
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &kind
	}
	return response
}

// reasons let clients tell kinds of refusals apart without reading them.
var reasons = map[int32]metav1.StatusReason{
	http.StatusBadRequest:          metav1.StatusReasonBadRequest,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
}
