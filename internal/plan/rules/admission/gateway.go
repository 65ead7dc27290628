package admission

import (
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// agentServiceAccount is the wire's agent, which writes the WireGuard key.
const agentServiceAccount = "antrea-agent"

// Gateway decides a request for a Gateway of a member.
func Gateway(r Request[v1alpha1.Gateway]) Verdict {
	return decide("Gateway", gatewaySteps, r, struct{}{})
}

var gatewaySteps = []Step[v1alpha1.Gateway, struct{}]{legible[v1alpha1.Gateway, struct{}](""), {
	Rule: rule.Rule{
		ID: "ADM-GW-1", Severity: rule.Refuse, Title: "Gateways are written by the controller and the agents",
		Why:    "A Gateway is where all traffic to other clusters goes. It is chosen from the annotated Nodes; one written by hand would draw that traffic to itself until the next choice.",
		Remedy: "annotate the Node that should be the gateway instead",
		Source: "webhooks of Antrea Multi-cluster v2.7",
	},
	judge: func(r Request[v1alpha1.Gateway], _ struct{}) ruling {
		if r.deletes() {
			return pass
		}
		switch _, name, ok := account(r.User); {
		case !ok:
			return unfit("only ServiceAccounts write Gateways")
		case name != v1alpha1.ControllerServiceAccount && name != agentServiceAccount:
			return deny("this ServiceAccount is not that of the controller or of the agents")
		}
		return pass
	},
}}
