package lab_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
)

func TestKilledComponentsComeBackAtTheSameAddress(t *testing.T) {
	c, client := leader(t)
	must(t, createNamespace(t.Context(), client, "before-kill"))
	for _, component := range []string{lab.Etcd, lab.APIServer, lab.ControllerManager} {
		must(t, c.Kill(t.Context(), component))
		must(t, c.WaitReady(patient(t)))
		if err := namespaceExists(t.Context(), client, "before-kill"); err != nil {
			t.Errorf("after kill -9 of %s: %v", component, err)
		}
	}
}

func TestPausedAPIServerAnswersNothingUntilContinued(t *testing.T) {
	c, client := leader(t)
	must(t, c.Pause(t.Context(), lab.APIServer))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := namespaceExists(ctx, client, "default"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen API server gave %v, want no answer", err)
	}
	must(t, c.Continue(t.Context(), lab.APIServer))
	must(t, namespaceExists(patient(t), client, "default"))
}

func TestFullDiskRefusesWritesAndServesReads(t *testing.T) {
	c, client := leader(t)
	must(t, c.FillDisk(patient(t)))
	if err := createNamespace(t.Context(), client, "no-space"); err == nil {
		t.Error("a write succeeded on a full disk")
	}
	must(t, namespaceExists(t.Context(), client, "default"))
	must(t, c.FreeDisk(patient(t)))
	must(t, createNamespace(patient(t), client, "space-again"))
}

func TestExpiredCertificateIsSeenByClientsUntilRenewed(t *testing.T) {
	c, client := leader(t)
	must(t, c.ExpireCertificate(patient(t)))
	err := namespaceExists(t.Context(), client, "default")
	if invalid := (x509.CertificateInvalidError{}); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("got %v, want an expired certificate", err)
	}
	must(t, c.RenewCertificate(patient(t)))
	must(t, namespaceExists(t.Context(), client, "default"))
}

func TestRestoreRewindsToTheSnapshot(t *testing.T) {
	c, client := leader(t)
	must(t, createNamespace(t.Context(), client, "in-snapshot"))
	must(t, c.Snapshot(patient(t), "friday"))
	must(t, createNamespace(t.Context(), client, "after-snapshot"))
	highest := revision(t, c)

	must(t, c.Restore(patient(t), "friday", 0))
	must(t, namespaceExists(patient(t), client, "in-snapshot"))
	if err := namespaceExists(patient(t), client, "after-snapshot"); !apierrors.IsNotFound(err) {
		t.Errorf("what was written after the snapshot: %v, want not found", err)
	}

	const bump = 1_000_000
	must(t, c.Restore(patient(t), "friday", bump))
	if now := revision(t, c); now < highest+bump/2 {
		t.Errorf("with a bump of %d the revision went from %d to %d", bump, highest, now)
	}
}

func TestRestoreFromNothingLeavesAFreshCluster(t *testing.T) {
	c, client := leader(t)
	must(t, createNamespace(t.Context(), client, "to-be-lost"))
	must(t, c.RestoreEmpty(patient(t)))
	if err := namespaceExists(patient(t), client, "to-be-lost"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
	must(t, createNamespace(patient(t), client, "fresh"))
}

func TestRestoreFromABadSnapshotChangesNothing(t *testing.T) {
	c, client := leader(t)
	must(t, createNamespace(t.Context(), client, "kept"))
	bad := c.Dir() + "/snapshots/bad.db"
	must(t, os.WriteFile(bad, []byte("not a snapshot"), 0o600))
	for _, name := range []string{"bad", "missing", "../escape"} {
		if err := c.Restore(patient(t), name, 0); err == nil {
			t.Errorf("snapshot %q was restored", name)
		}
	}
	must(t, namespaceExists(patient(t), client, "kept"))
}

// revision is the resource version of the cluster as a whole.
func revision(t *testing.T, c *lab.Cluster) (n int64) {
	t.Helper()
	list, err := clientOf(t, c.RESTConfig()).CoreV1().Namespaces().List(patient(t), metav1.ListOptions{})
	must(t, err)
	if _, err := fmt.Sscan(list.ResourceVersion, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCutLinkIsolatesAndHealedLinkConnects(t *testing.T) {
	l := shared.Lab(t)
	east := labtest.Cluster(t, l, "east")
	address, err := east.RelayAddress("leader")
	must(t, err)
	config := rest.CopyConfig(east.RESTConfig())
	config.Host, config.Timeout = address, 300*time.Millisecond
	viaLink := clientOf(t, config)
	must(t, namespaceExists(patient(t), viaLink, "default"))

	for _, how := range []relay.Cut{relay.Silent, relay.Refused} {
		must(t, l.Cut(t.Context(), "leader", "east", how))
		if err := namespaceExists(t.Context(), viaLink, "default"); err == nil {
			t.Errorf("%s cut: the other cluster answered", how)
		}
		must(t, namespaceExists(t.Context(), clientOf(t, east.RESTConfig()), "default")) // the cluster itself is well
		must(t, l.Heal(t.Context(), "leader", "east"))
		eventually(t, func(ctx context.Context) error { return namespaceExists(ctx, viaLink, "default") })
	}
}

func TestFaultsNameWhatIsUnknown(t *testing.T) {
	l := shared.Lab(t)
	c := labtest.Cluster(t, l, "east")
	for what, err := range map[string]error{
		"component": c.Kill(t.Context(), "kubelet"),
		"restart":   c.Restart(t.Context(), "kubelet"),
		"cluster":   l.Cut(t.Context(), "east", "mars", relay.Silent),
		"condition": l.Cut(t.Context(), "east", "leader", "sideways"),
	} {
		if err == nil {
			t.Errorf("an unknown %s was accepted", what)
		}
	}
}
