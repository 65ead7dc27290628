package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
)

const day = 24 * time.Hour

var key = types.NamespacedName{Namespace: "area", Name: "pair"}

// stage is a cluster with an empty Secret and one webhook configuration of each
// kind, and a clock that the test sets.
type stage struct {
	client.Client
	keeper  *keeper
	serving *Serving
	now     time.Time
}

func newStage(t *testing.T) *stage {
	t.Helper()
	hook := admissionregistrationv1.ValidatingWebhook{Name: "a.example"}
	mutating := admissionregistrationv1.MutatingWebhook{Name: "b.example"}
	s := &stage{now: time.Now().Truncate(time.Second)}
	s.Client = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook, hook}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistrationv1.MutatingWebhook{mutating}},
	).Build()
	s.keeper = &keeper{Client: s.Client, Now: func() time.Time { return s.now }, Settings: Settings{
		Namespace: key.Namespace, Secret: key.Name, Validating: "v", Mutating: "m", Names: []string{"hook.area.svc", "127.0.0.1"},
	}}
	s.serving = &Serving{client: s.Client}
	return s
}

// look lets the loops run until there is nothing to do for at least a second.
func (s *stage) look(t *testing.T) {
	t.Helper()
	for range 10 {
		result, err := s.keeper.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.serving.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter >= time.Second {
			return
		}
	}
	t.Fatal("the loop does not come to rest")
}

func (s *stage) bundle(t *testing.T) []byte {
	t.Helper()
	var v admissionregistrationv1.ValidatingWebhookConfiguration
	var m admissionregistrationv1.MutatingWebhookConfiguration
	if err := s.Get(t.Context(), types.NamespacedName{Name: "v"}, &v); err != nil {
		t.Fatal(err)
	}
	if err := s.Get(t.Context(), types.NamespacedName{Name: "m"}, &m); err != nil {
		t.Fatal(err)
	}
	bundle := v.Webhooks[0].ClientConfig.CABundle
	if !bytes.Equal(bundle, v.Webhooks[1].ClientConfig.CABundle) || !bytes.Equal(bundle, m.Webhooks[0].ClientConfig.CABundle) {
		t.Fatal("the webhooks trust different CAs")
	}
	return bundle
}

// trusted ends the test unless the configurations trust a pair at the stage's time.
func (s *stage) trusted(t *testing.T, served *tls.Certificate) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.bundle(t))
	for _, name := range s.keeper.Names {
		if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: s.now}); err != nil {
			t.Fatalf("at %s: %v", s.now, err)
		}
	}
}

func (s *stage) served(t *testing.T) *tls.Certificate {
	t.Helper()
	served, err := s.serving.Get(nil)
	if err != nil {
		t.Fatal(err)
	}
	return served
}

// covers: WK-26
func TestWK_26_TwoYearsWithoutARestart(t *testing.T) {
	s := newStage(t)
	if _, err := s.serving.Get(nil); err == nil {
		t.Fatal("something is served before there is a key pair")
	}
	s.look(t)
	pairs := map[string]bool{}
	previous := s.served(t)
	for range 365 {
		s.now = s.now.Add(2 * day)
		s.look(t)
		s.trusted(t, s.served(t))
		// A replica that hears nothing for two days is trusted as well.
		s.trusted(t, previous)
		previous = s.served(t)
		pairs[string(previous.Certificate[0])] = true
		if n := bytes.Count(s.bundle(t), []byte("BEGIN")); n > 2 {
			t.Fatalf("the bundle has grown to %d CAs", n)
		}
	}
	if len(pairs) < 10 {
		t.Errorf("in two years %d key pairs were served", len(pairs))
	}
}

func TestAQuietLoopWritesNothing(t *testing.T) {
	s := newStage(t)
	s.look(t)
	version := func() (versions string) {
		for _, o := range []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}}} {
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			versions += o.GetResourceVersion() + " "
		}
		return versions
	}
	before := version()
	s.now = s.now.Add(10 * day)
	s.look(t)
	if after := version(); after != before {
		t.Errorf("resource versions went from %s to %s", before, after)
	}
}

// Whatever stands in the Secret, the loop comes to a pair that can be served, and
// nothing of the content reaches an error.
func TestDamagedSecrets(t *testing.T) {
	for name, damage := range map[string]func(map[string][]byte){
		"nothing":             func(d map[string][]byte) { clear(d) },
		"no key":              func(d map[string][]byte) { delete(d, keyKey) },
		"no PEM":              func(d map[string][]byte) { d[keyCertificate] = []byte("secret-word") },
		"no bundle":           func(d map[string][]byte) { delete(d, keyAuthorities) },
		"a bundle of nothing": func(d map[string][]byte) { d[keyAuthorities] = []byte("secret-word") },
		"a CA of others": func(d map[string][]byte) {
			other, _ := issue([]string{"x"}, time.Now(), time.Now().Add(day))
			d[keyAuthorities] = other.authority
		},
		"half a next pair": func(d map[string][]byte) { d[keyNextKey] = []byte("secret-word") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.look(t)
			var secret corev1.Secret
			if err := s.Get(t.Context(), key, &secret); err != nil {
				t.Fatal(err)
			}
			damage(secret.Data)
			if problem := read(&secret).problem; problem != nil && strings.Contains(problem.Error(), "secret-word") {
				t.Errorf("it tells what the Secret holds: %v", problem)
			}
			if err := s.Update(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
			s.look(t)
			s.trusted(t, s.served(t))
		})
	}
}

// Two replicas that both believe to be active agree on what the first wrote.
func TestTwoKeepersAgree(t *testing.T) {
	s := newStage(t)
	var secret corev1.Secret
	if err := s.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	s.look(t)
	first := s.served(t)
	// The second has an old view of the Secret: there is no key pair in it.
	late := seen{secret: &secret}
	next, err := take(late.secret, "issue", s.keeper.Names, s.now, s.keeper.Times)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), next); err == nil {
		t.Fatal("the late write was taken")
	}
	s.look(t)
	if !bytes.Equal(first.Certificate[0], s.served(t).Certificate[0]) {
		t.Error("another key pair is served")
	}
}

func TestAMissingSecretIsAnErrorWithANextStep(t *testing.T) {
	s := newStage(t)
	s.look(t)
	if err := s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
		t.Fatal(err)
	}
	_, err := s.keeper.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err == nil || !strings.Contains(err.Error(), "apply the manifests again") {
		t.Errorf("%v", err)
	}
	if _, err := s.serving.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || s.serving.Ready(nil) != nil {
		t.Errorf("what was served before is not any more: %v", err)
	}
}
