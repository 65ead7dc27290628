package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

var admissionsFamily = family{"lockstep_admission_requests_total",
	"Requests that were decided, by resource, operation, the rule that decided (none: no rule objected) and whether it allowed them.",
	[]string{"resource", "operation", "rule", "allowed"}}

// Admissions counts verdicts. Every replica serves, so every replica tells.
type Admissions struct{ decided *prometheus.CounterVec }

func newAdmissions(role string) Admissions {
	return Admissions{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: admissionsFamily.name, Help: admissionsFamily.help, ConstLabels: prometheus.Labels{"role": role},
	}, admissionsFamily.labels)}
}

// Admitted counts one.
func (a Admissions) Admitted(r *admissionv1.AdmissionRequest, v admission.Verdict) {
	resource, deciding := r.Resource.Resource, v.Rule
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	if deciding == "" {
		deciding = "none"
	}
	a.decided.WithLabelValues(resource, string(r.Operation), deciding, strconv.FormatBool(v.Allowed)).Inc()
}
