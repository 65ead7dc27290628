// Package webhook serves admission over HTTPS: a request in, the verdict of a
// pure rule out.
//
//	AdmissionReview → Decide (observe, then plan/rules/admission) → AdmissionReview
//
// Every replica of a role serves, whether it is the active one or not.
package webhook
