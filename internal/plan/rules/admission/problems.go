package admission

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Problem is a rule that an export breaks as it is stored.
type Problem struct {
	Rule rule.Rule
	Why  string
}

// ExportProblems lists every rule about the content of an export (ADM-RE-10 to
// ADM-RE-19) that a stored one breaks, if its cluster were to create it today.
func ExportProblems(e *v1alpha1.ResourceExport) []Problem {
	request := exportRequest{Operation: admissionv1.Create, Namespace: e.Namespace, Name: e.Name, Object: e}
	observed := ExportObserved{Caller: Caller{Account: rule.Known(&Account{Annotated: true, BoundID: e.Spec.ClusterID})}}
	var problems []Problem
	for _, steps := range [][]exportStep{exportTupleSteps, exportLabelSteps} {
		for _, step := range steps {
			if ruling := step.judge(request, observed); ruling.end == denied {
				problems = append(problems, Problem{step.Rule, ruling.why})
			}
		}
	}
	return problems
}
