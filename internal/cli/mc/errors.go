package mc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/handshake"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// failed is an error that is no rule's decision: what was attempted, what
// stands in the way, and what to do next.
func failed(what, next string, cause error) error {
	return &exit.Error{Code: exit.Failed, Cause: fmt.Errorf("%s: %w", what, cause), Next: next}
}

// waiting is an error about something that is not so yet.
func waiting(what, next string, cause error) error {
	return &exit.Error{Code: exit.Waiting, Cause: fmt.Errorf("%s: %w", what, cause), Next: next}
}

// explain adds the next step to an error of an API server, where one is known.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if refusal.In(err) != nil || isExplained(err) {
		return err
	}
	if deniedByAdmission(err) {
		return &refusal.Refusal{What: what, Why: err.Error(), Cause: err}
	}
	next := nextStep(err)
	if next == "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	return failed(what, next, err)
}

// deniedByAdmission tells the no of an admission webhook from the no of the
// authorizer: only the latter says which resource it was about.
func deniedByAdmission(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	s := status.Status()
	client := s.Code == http.StatusBadRequest || s.Code == http.StatusForbidden || s.Code == http.StatusPreconditionFailed
	return client && s.Details == nil
}

func isExplained(err error) bool {
	var coded *exit.Error
	return errors.As(err, &coded)
}

// certificateStep is what to do about the certificate of an API server; "" when
// there is nothing wrong with it.
func certificateStep(err error) string {
	problem, found := handshake.Find(err)
	if !found {
		return ""
	}
	switch problem.Kind {
	case handshake.UnknownAuthority:
		return "take the kubeconfig of that cluster anew: its CA has changed, or another server answers at that address"
	case handshake.OutOfTime:
		return "renew the certificate on the control plane of that cluster (where kubeadm made it: kubeadm certs renew apiserver), and see that the clock of this machine is right"
	case handshake.OtherName:
		return "use an address in the kubeconfig that the certificate is for, or have it issued for this one too"
	default:
		return "replace the certificate of that API server"
	}
}

func nextStep(err error) string {
	var network net.Error
	var lacking *missingRight
	switch {
	case errors.As(err, &lacking):
		return fmt.Sprintf("have the right to %s granted, or choose another context with --context", lacking.right)
	case certificateStep(err) != "":
		return certificateStep(err)
	case meta.IsNoMatchError(err):
		return "install the multi-cluster CRDs and the controller in this cluster, or choose another cluster with --context"
	case apierrors.IsUnauthorized(err):
		return "renew the credentials of this kubeconfig context, or choose another with --context"
	case apierrors.IsForbidden(err):
		return "ask an administrator of this cluster for the right, or choose another context with --context"
	case apierrors.IsInternalError(err):
		return "see that the multi-cluster controller of this cluster runs, then repeat the command"
	case errors.Is(err, context.Canceled):
		return "repeat the command; it continues where it was stopped"
	case errors.As(err, &network):
		return "check that the API server of this kubeconfig context can be reached from here"
	default:
		return ""
	}
}
