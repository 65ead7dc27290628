package certificate

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	plan "github.com/lockstep-dev/lockstep/internal/plan/certificate"
)

// keeper is the loop of the active replica: the Secret by its resource version,
// then the configurations.
type keeper struct {
	Client client.Client
	Settings
	Now func() time.Time

	// published is since when this replica has seen the CA of the next pair in every
	// configuration. A replica that takes over waits anew: that only takes longer.
	published time.Time
}

// seen is what a pass looks at.
type seen struct {
	secret     *corev1.Secret
	content    content
	validating *admissionregistrationv1.ValidatingWebhookConfiguration // nil when there is none
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
}

// Reconcile implements reconcile.Reconciler.
func (k *keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	o, err := k.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := plan.Decide(plan.Observed{
		Now: k.Now(), Names: k.Names, Current: planned(o.content.current), Next: planned(o.content.next),
		Published: k.published, Ends: o.content.ends(),
	}, k.Times)
	if decision.Step != plan.Keep {
		if err := k.apply(ctx, &o, decision); err != nil {
			return reconcile.Result{}, stale(err)
		}
		// The next step is for the next look; what is to be trusted is told at once.
		decision.LookAgainIn = time.Millisecond
	}
	if err := k.publish(ctx, o); err != nil {
		return reconcile.Result{}, stale(err)
	}
	return reconcile.Result{RequeueAfter: max(decision.LookAgainIn, time.Millisecond)}, nil
}

// stale is nil for a conflict: somebody was first, and that wakes us again.
func stale(err error) error {
	if apply.IsStale(err) {
		return nil
	}
	return err
}

func (k *keeper) observe(ctx context.Context) (o seen, err error) {
	o.secret = &corev1.Secret{}
	err = k.Client.Get(ctx, types.NamespacedName{Namespace: k.Namespace, Name: k.Secret}, o.secret)
	if apierrors.IsNotFound(err) {
		return o, fmt.Errorf("cannot keep the key pair of the webhooks: there is no Secret %q in Namespace %q; apply the manifests again", k.Secret, k.Namespace)
	}
	if err != nil {
		return o, err
	}
	o.content = read(o.secret)
	if o.content.problem != nil {
		log.FromContext(ctx).Info("The Secret of the webhooks holds something that cannot be used", "error", o.content.problem.Error())
	}
	if o.validating, err = get[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, k.Client, k.Validating); err != nil {
		return o, err
	}
	if o.mutating, err = get[admissionregistrationv1.MutatingWebhookConfiguration](ctx, k.Client, k.Mutating); err != nil {
		return o, err
	}
	switch {
	case o.content.next == nil || !o.trust(o.secret.Data[keyAuthorities]):
		k.published = time.Time{}
	case k.published.IsZero():
		k.published = k.Now()
	}
	return o, nil
}

// get is nil for what is not there or has no name.
func get[T any, P apply.Object[T]](ctx context.Context, c client.Client, name string) (P, error) {
	if name == "" {
		return nil, nil
	}
	object := P(new(T))
	if err := c.Get(ctx, types.NamespacedName{Name: name}, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

// apply makes one step with the Secret. Two replicas that both believe to be
// active write one resource version, so one of them is refused.
func (k *keeper) apply(ctx context.Context, o *seen, decision plan.Decision) error {
	next, err := take(o.secret, decision.Step, k.Names, k.Now(), k.Times)
	if err != nil {
		return err
	}
	if _, err := apply.Change(ctx, k.Client, o.secret, next); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Changed the key pair of the webhooks", "step", string(decision.Step), "reason", decision.Why)
	o.secret, o.content = next, read(next)
	return nil
}

// publish tells the API server whom to trust.
func (k *keeper) publish(ctx context.Context, o seen) error {
	bundle := o.secret.Data[keyAuthorities]
	if len(bundle) == 0 {
		return nil
	}
	if o.validating != nil {
		next := o.validating.DeepCopy()
		for i := range next.Webhooks {
			next.Webhooks[i].ClientConfig.CABundle = bundle
		}
		if _, err := apply.Change(ctx, k.Client, o.validating, next); err != nil {
			return err
		}
	}
	if o.mutating != nil {
		next := o.mutating.DeepCopy()
		for i := range next.Webhooks {
			next.Webhooks[i].ClientConfig.CABundle = bundle
		}
		if _, err := apply.Change(ctx, k.Client, o.mutating, next); err != nil {
			return err
		}
	}
	return nil
}

// trust tells whether every webhook of every configuration has these CAs.
func (o seen) trust(bundle []byte) bool {
	if o.validating != nil {
		for _, hook := range o.validating.Webhooks {
			if !contains(hook.ClientConfig.CABundle, bundle) {
				return false
			}
		}
	}
	if o.mutating != nil {
		for _, hook := range o.mutating.Webhooks {
			if !contains(hook.ClientConfig.CABundle, bundle) {
				return false
			}
		}
	}
	return true
}

var _ reconcile.Reconciler = (*keeper)(nil)

func (k *keeper) setup(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("certificate").For(&corev1.Secret{}, k.only())
	if k.Validating != "" {
		b = b.Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, k.one())
	}
	if k.Mutating != "" {
		b = b.Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, k.one())
	}
	return b.WithOptions(k.Controller).Complete(k)
}
