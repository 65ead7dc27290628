package mc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

func TestExplain(t *testing.T) {
	sets := schema.GroupResource{Resource: "clustersets"}
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "v" denied the request: no`}}
	for name, c := range map[string]struct {
		err   error
		code  int
		words []string
	}{
		"the kind is not there":    {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ClusterSet"}}, exit.Failed, []string{"ClusterSet", "install"}},
		"who is asking?":           {apierrors.NewUnauthorized("no"), exit.Failed, []string{"credentials"}},
		"not allowed":              {apierrors.NewForbidden(sets, "fleet", errors.New("no")), exit.Failed, []string{"administrator"}},
		"admission says no":        {denied, exit.Refused, []string{"denied the request: no"}},
		"admission is not there":   {apierrors.NewInternalError(errors.New("failed calling webhook")), exit.Failed, []string{"controller"}},
		"stopped":                  {context.Canceled, exit.Failed, []string{"repeat"}},
		"nobody listens":           {&net.OpError{Op: "dial", Err: errors.New("refused")}, exit.Failed, []string{"reached"}},
		"nothing is known of it":   {errPlanted, exit.Failed, []string{"planted"}},
		"a refusal stays as it is": {fmt.Errorf("x: %w", &refusal.Refusal{What: "no"}), exit.Refused, []string{"x: no"}},
		"told already":             {exit.Waitingf("later"), exit.Waiting, []string{"later"}},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, explain("cannot do it", c.err), c.code, c.words...) })
	}
	if err := explain("cannot do it", nil); err != nil {
		t.Error(err)
	}
}

// A certificate is told by what it is, not by the words of the library.
func TestACertificateThatIsNotTrustedHasANextStep(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, err := http.Get(server.URL) //nolint:bodyclose // nobody answers whom nobody trusts
	wantError(t, explain("cannot list", err), exit.Failed, "unknown authority", "take the kubeconfig of that cluster anew")
	if next := certificateStep(errors.New("refused")); next != "" {
		t.Errorf("a certificate is blamed: %s", next)
	}
}
