package admission_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// life of a key pair in the test about rotation: staged after 20 s, promoted a
// second later, ended after 30 s.
const life = 30 * time.Second

// hammer writes without a pause until it is stopped: what a member must not do,
// what it may do, and what an administrator does.
type hammer struct {
	arena                 *arena
	refused, accepted, by atomic.Int64
	failed                atomic.Int64 // of what is allowed, because nobody answered

	mu       sync.Mutex
	slipped  []string // forbidden writes that were let through
	hindered []error  // writes of the administrator that were not
}

// start runs three writers; stop ends them and waits.
func (h *hammer) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for _, write := range []func(context.Context, int){h.forbidden, h.allowed, h.administrator} {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				write(ctx, i)
			}
		})
	}
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); writers.Wait() }) }
	t.Cleanup(stop)
	return stop
}

// forbidden tries the writes whose success would harm most, one after another.
func (h *hammer) forbidden(ctx context.Context, i int) {
	c := h.arena.clients[east]
	victim := func() *rex { return endpointsExport("west", "cart") }
	var what string
	var err error
	switch i % 5 {
	case 0:
		what, err = "export in the name of west", c.Create(ctx, serviceExport("west", fmt.Sprintf("forged-%d", i)))
	case 1:
		before, after := victim(), victim()
		after.Spec.Endpoints.Subsets[0].Addresses[0].IP = "10.20.0.66"
		what, err = "endpoints of west", c.Patch(ctx, after, client.MergeFrom(before))
	case 2:
		what, err = "deletion of an export of west", c.Delete(ctx, victim())
	case 3:
		what, err = "deletion of the announce of west", c.Delete(ctx, announce("west"))
	case 4:
		before, after := victim(), victim()
		after.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceFailure, Status: corev1.ConditionFalse, Message: "no"}}
		what, err = "status of an export of west", c.Status().Patch(ctx, after, client.MergeFrom(before))
	}
	if err != nil {
		h.refused.Add(1)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slipped = append(h.slipped, fmt.Sprintf("%s at %s", what, time.Now().Format(time.TimeOnly)))
}

// allowed is what a member does all day. While nobody answers it is refused, and
// the member tries again.
func (h *hammer) allowed(ctx context.Context, i int) {
	before := slice(east, "cart")
	after := before.DeepCopy()
	after.Endpoints[0].Addresses[0] = fmt.Sprintf("10.96.7.%d", i%200+1)
	if err := h.arena.clients[east].Patch(ctx, after, client.MergeFrom(before)); err != nil {
		h.failed.Add(1)
		return
	}
	h.accepted.Add(1)
}

// administrator mends and deletes as ever, whether anybody answers or not.
func (h *hammer) administrator(ctx context.Context, i int) {
	c := h.arena.Leader.Client
	before := announce("west")
	after := before.DeepCopy()
	after.Labels = map[string]string{"seen": fmt.Sprint(i)}
	err := c.Patch(ctx, after, client.MergeFrom(before))
	if err == nil {
		e := labels("nobody")
		err = errors.Join(c.Create(ctx, e), c.Delete(ctx, e))
	}
	if err == nil || ctx.Err() != nil {
		h.by.Add(1)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hindered = append(h.hindered, err)
}

func (h *hammer) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	t.Logf("%d forbidden writes were refused; %d allowed ones went through and %d did not; the administrator wrote %d times",
		h.refused.Load(), h.accepted.Load(), h.failed.Load(), h.by.Load())
	if len(h.slipped) > 0 {
		t.Errorf("%d forbidden writes slipped through: %q", len(h.slipped), h.slipped)
	}
	if len(h.hindered) > 0 {
		t.Errorf("%d writes of the administrator were hindered, first: %v", len(h.hindered), h.hindered[0])
	}
	if h.refused.Load() < 20 || h.accepted.Load() < 5 || h.by.Load() < 5 {
		t.Error("that is too few to say anything")
	}
}

// moves waits until allowed writes go through again.
func (h *hammer) moves(t *testing.T, after string) {
	t.Helper()
	from := h.accepted.Load()
	fleet.Within(t, 2*time.Minute, "a member writes again after "+after, func() error {
		if h.accepted.Load() < from+3 {
			return fmt.Errorf("%d writes", h.accepted.Load()-from)
		}
		return nil
	})
}

// While replicas restart one after another, and both at once, no forbidden write is
// let through, an administrator is not hindered, and members go on afterwards.
//
// covers: WK-26, WK-64
func TestNoWriteSlipsThroughARestart(t *testing.T) {
	a := newArena(t)
	a.settle(t, east, "west")
	before := a.belongings(t, "west")
	h := &hammer{arena: a}
	stop := h.start(t)
	h.moves(t, "the start")
	for round := range 3 {
		for _, pod := range a.pods(t) {
			if err := a.Leader.Lab.Kill(t.Context(), area+"/"+pod); err != nil {
				t.Fatal(err)
			}
			h.moves(t, fmt.Sprintf("replica %s was killed, round %d", pod, round))
		}
	}
	// Now nobody answers at all.
	if err := a.Leader.Lab.Kill(t.Context(), area+"/antrea-mc-controller"); err != nil {
		t.Fatal(err)
	}
	h.moves(t, "all replicas were killed")
	// And as an upgrade does it: new Pods before the old ones go.
	a.rollOut(t)
	h.moves(t, "new Pods have replaced the old ones")
	stop()
	h.check(t)
	if after := a.belongings(t, "west"); len(after) != len(before) {
		t.Errorf("west had %d objects and has %d", len(before), len(after))
	}
}

func (a *arena) pods(t *testing.T) (names []string) {
	t.Helper()
	var pods corev1.PodList
	if err := a.Leader.List(t.Context(), &pods, client.InNamespace(area), client.MatchingLabels{"component": "antrea-mc-controller"}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return names
}

// rollOut deletes the Pods one by one, each when the others are ready.
func (a *arena) rollOut(t *testing.T) {
	t.Helper()
	for _, name := range a.pods(t) {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = area, name
		if err := a.Leader.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		fleet.Within(t, 2*time.Minute, "another Pod for "+name, func() error {
			if err := a.Leader.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is still there (%v)", err)
			}
			ready := 0
			var pods corev1.PodList
			if err := a.Leader.List(t.Context(), &pods, client.InNamespace(area), client.MatchingLabels{"component": "antrea-mc-controller"}); err != nil {
				return err
			}
			for _, p := range pods.Items {
				for _, c := range p.Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
						ready++
					}
				}
			}
			if ready < 2 {
				return fmt.Errorf("%d Pods are ready", ready)
			}
			return nil
		})
	}
}

// The key pair is replaced twice while the replicas run. Nothing slips through,
// nothing that is allowed fails, and no process is started again.
//
// covers: WK-26
func TestWK_26_CertificatesRotateWhileRunning(t *testing.T) {
	a := newArena(t, "LOCKSTEP_CERTIFICATE_LIFE="+life.String())
	a.settle(t, east, "west")
	h := &hammer{arena: a}
	stop := h.start(t)
	h.moves(t, "the start")
	first := a.served(t)
	processes := a.restarts(t)
	seen := map[string]bool{first: true}
	failedAt := h.failed.Load()
	fleet.Within(t, 4*life, "the key pair was replaced twice", func() error {
		a.bundlesHold(t, a.served(t))
		seen[a.served(t)] = true
		if len(seen) < 3 {
			return fmt.Errorf("%d key pairs were served", len(seen))
		}
		return nil
	})
	h.moves(t, "two rotations")
	stop()
	h.check(t)
	if failed := h.failed.Load() - failedAt; failed > 1 { // the last may have been stopped
		t.Errorf("%d allowed writes failed during the rotations", failed)
	}
	if after := a.restarts(t); after != processes {
		t.Errorf("containers were started %d times, before the rotations %d", after, processes)
	}
}

// served is the certificate that the Secret says is served.
func (a *arena) served(t *testing.T) string {
	t.Helper()
	var secret corev1.Secret
	if err := a.Leader.Get(t.Context(), types.NamespacedName{Namespace: area, Name: config.WebhookSecret}, &secret); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data[corev1.TLSCertKey])
}

// bundlesHold ends the test unless every webhook trusts a certificate.
func (a *arena) bundlesHold(t *testing.T, certificate string) {
	t.Helper()
	block, _ := pem.Decode([]byte(certificate))
	if block == nil {
		t.Fatal("the Secret holds no certificate")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	validating, mutating := config.WebhookConfigurations(config.Leader, area)
	v, m := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := errors.Join(a.Leader.Get(t.Context(), types.NamespacedName{Name: validating}, v), a.Leader.Get(t.Context(), types.NamespacedName{Name: mutating}, m)); err != nil {
		t.Fatal(err)
	}
	trusts := func(name string, bundle []byte) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: config.WebhookService + "." + area + ".svc", CurrentTime: leaf.NotAfter.Add(-time.Second)}); err != nil {
			t.Fatalf("webhook %s does not trust what is served: %v", name, err)
		}
	}
	for _, hook := range v.Webhooks {
		trusts(hook.Name, hook.ClientConfig.CABundle)
	}
	for _, hook := range m.Webhooks {
		trusts(hook.Name, hook.ClientConfig.CABundle)
	}
}

// restarts counts how often containers of the leader were started again.
func (a *arena) restarts(t *testing.T) (n int32) {
	t.Helper()
	var pods corev1.PodList
	if err := a.Leader.List(t.Context(), &pods, client.InNamespace(area)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			n += c.RestartCount
		}
	}
	return n
}
