package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

// asAccount is a client with a token of ServiceAccount default/default.
func asAccount(t *testing.T, c *lab.Cluster, admin kubernetes.Interface) *kubernetes.Clientset {
	t.Helper()
	var token string
	eventually(t, func(ctx context.Context) error {
		answer, err := admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err == nil {
			token = answer.Status.Token
		}
		return err
	})
	config := rest.AnonymousClientConfig(c.RESTConfig())
	config.BearerToken = token
	return clientOf(t, config)
}

// ask is one request, which is not tried again; that the account may do nothing
// is as good an answer as any.
func ask(ctx context.Context, client *kubernetes.Clientset) error {
	err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/pods").MaxRetries(0).Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

func TestOverloadedAPIServerRefusesAccountsUntilRelieved(t *testing.T) {
	c, admin := leader(t)
	account := asAccount(t, c, admin)
	must(t, c.Overload(patient(t)))
	if err := ask(t.Context(), account); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a ServiceAccount was answered %v, want 429", err)
	}
	must(t, ask(t.Context(), clientOf(t, c.RESTConfig())))
	must(t, c.Overload(patient(t))) // once more changes nothing
	must(t, c.Relieve(patient(t)))
	must(t, ask(t.Context(), account))
}

func TestExpiredTokensAreRefusedAndNewOnesAreGood(t *testing.T) {
	c, admin := leader(t)
	account := asAccount(t, c, admin)
	must(t, ask(t.Context(), account))
	must(t, c.ExpireTokens(patient(t)))
	if err := ask(t.Context(), account); !apierrors.IsUnauthorized(err) {
		t.Errorf("an old token was answered %v, want 401", err)
	}
	must(t, ask(t.Context(), asAccount(t, c, admin)))
}

func TestClockOfADeploymentIsShifted(t *testing.T) {
	c, admin := leader(t)
	deploy(t, admin, deployment("timed", sleeper, 1))
	shifted := func() (bool, error) {
		status, err := c.Status(t.Context())
		if err != nil {
			return false, err
		}
		for _, pod := range status.Pods {
			if strings.HasPrefix(pod.Pod, "timed-") {
				environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pod.Pid))
				return bytes.Contains(environment, []byte("LOCKSTEP_CLOCK_OFFSET=48h0m0s\x00")), err
			}
		}
		return false, errors.New("no process of the Pod runs")
	}
	for _, offset := range []time.Duration{48 * time.Hour, 0} {
		must(t, c.ShiftClock(patient(t), "default/timed", offset))
		eventually(t, func(context.Context) error { // the former Pod ends in its own time
			now, err := shifted()
			if err == nil && now != (offset != 0) {
				err = fmt.Errorf("after a shift of %s the process is shifted: %v", offset, now)
			}
			return err
		})
	}
	if err := c.ShiftClock(t.Context(), "default/nobody", time.Hour); err == nil {
		t.Error("the clock of a Deployment that does not exist was shifted")
	}
}
