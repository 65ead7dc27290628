package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	plan "github.com/lockstep-dev/lockstep/internal/plan/certificate"
)

// Settings say which objects are kept.
type Settings struct {
	// Namespace and Secret are where the key pair is. The Secret has to exist.
	Namespace, Secret string
	// Validating and Mutating are names of webhook configurations; empty: none.
	Validating, Mutating string
	// Names are the DNS names and addresses the webhooks are asked under.
	Names []string
	Times plan.Times
	// Controller are the options of the loops.
	Controller controller.Options
}

// ByObject keeps a cache to the objects of the settings: of these kinds a
// controller may read no others.
func (s Settings) ByObject() map[client.Object]cache.ByObject {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	kinds := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{s.Namespace: {FieldSelector: named(s.Secret)}}},
	}
	if s.Validating != "" {
		kinds[&admissionregistrationv1.ValidatingWebhookConfiguration{}] = cache.ByObject{Field: named(s.Validating)}
	}
	if s.Mutating != "" {
		kinds[&admissionregistrationv1.MutatingWebhookConfiguration{}] = cache.ByObject{Field: named(s.Mutating)}
	}
	return kinds
}

// Setup adds both loops to a manager, and returns what is to be served.
func Setup(mgr ctrl.Manager, settings Settings, now func() time.Time) (*Serving, error) {
	serving := &Serving{client: mgr.GetClient()}
	waiting := settings.Controller
	waiting.NeedLeaderElection = ptr.To(false)
	err := ctrl.NewControllerManagedBy(mgr).Named("served-certificate").For(&corev1.Secret{}, settings.only()).
		WithOptions(waiting).Complete(serving)
	return serving, errors.Join(err, (&keeper{Client: mgr.GetClient(), Settings: settings, Now: now}).setup(mgr))
}

// only looks at the one Secret, where a cache has more.
func (s Settings) only() builder.Predicates {
	return builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == s.Namespace && o.GetName() == s.Secret
	}))
}

// one makes every change a reason to look at the whole.
func (s Settings) one() handler.EventHandler {
	key := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Secret}}
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{key}
	})
}

// Serving is the key pair that a replica serves: the current one of the Secret,
// and the last one there was when the Secret holds none. It is a loop of every
// replica, whether active or not.
type Serving struct {
	client  client.Client
	current atomic.Pointer[tls.Certificate]
}

// Reconcile implements reconcile.Reconciler.
func (s *Serving) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := s.client.Get(ctx, request.NamespacedName, &secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if current := read(&secret).current; current != nil {
		s.current.Store(current)
	}
	return reconcile.Result{}, nil
}

var errNone = errors.New("there is no key pair to serve yet")

// Get is for tls.Config.GetCertificate.
func (s *Serving) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := s.current.Load(); current != nil {
		return current, nil
	}
	return nil, errNone
}

// Ready is for probes: a replica without a key pair can answer nobody.
func (s *Serving) Ready(*http.Request) error {
	_, err := s.Get(nil)
	return err
}
