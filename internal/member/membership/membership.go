// Package membership keeps the Link of a member where its ClusterSet says it
// should lead, reports how that goes on the ClusterSet, and takes everything
// back when the cluster leaves.
package membership

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
)

// Reconciler has one key, its Namespace: a member belongs to one ClusterSet.
type Reconciler struct {
	Local client.Client
	// Uncached reads ClusterClaims, a legacy kind not worth a watch, ClusterSets of
	// other Namespaces, which matter only when there is none in this one, and the
	// one Secret that the ClusterSet names, of all in the Namespace.
	Uncached client.Reader
	Link     *remote.Link
	Events   events.EventRecorder

	Namespace     string // of the ClusterSet and its Secret
	ClusterUID    string // UID of this cluster's Namespace kube-system
	AllowLoopback bool
	ClaimsServed  bool // the API server still knows ClusterClaims (API-LEG-1)
	// Timeout is the age at which the last heartbeat says nothing any more;
	// LookAgain how often that is checked.
	Timeout, LookAgain time.Duration
	Now                func() time.Time
	// Withheld tells whether there may be policies here that only a hold keeps.
	Withheld func(context.Context) (bool, error)

	// last is where the link led last. It outlives the Secret, so that a member
	// whose Secret goes first, or that is renamed before its new Secret is there,
	// can still withdraw.
	last *clusterset.Access
}

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	key := reconcile.Request{}
	key.Namespace = r.Namespace
	one := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{key} }
	return ctrl.NewControllerManagedBy(mgr).Named("membership").WithOptions(options).
		Watches(&v1alpha2.ClusterSet{}, handler.EnqueueRequestsFromMapFunc(one)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(one), builder.OnlyMetadata).
		Watches(&v1alpha1.ClusterInfoImport{}, handler.EnqueueRequestsFromMapFunc(one)).
		WatchesRawSource(startWith(key)).
		WatchesRawSource(r.Link.StateChanged(key)).
		WatchesRawSource(r.Link.Watch(&v1alpha1.MemberClusterAnnounce{}, one)).
		Complete(r)
}

// observed is what one pass depends on.
type observed struct {
	set     *v1alpha2.ClusterSet // the one that counts; nil when there is none
	surplus []*v1alpha2.ClusterSet
	id      string
	access  *clusterset.Access  // where the set says the link should lead; nil when it cannot
	problem *clusterset.Problem // why not
	state   remote.State
	// announced and answered are what the area shows now, whether or not a beat
	// has read it.
	announced, answered bool
	awaited             sets.Set[string] // clusters that a hold waits for
	// conflicts are the clusters whose addresses are claimed twice, with what
	// stands on their ClusterInfoImports.
	conflicts map[string]string
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case seen.set == nil:
		err = r.leaveAll(ctx)
	case !seen.set.DeletionTimestamp.IsZero():
		err = r.depart(ctx, seen)
	default:
		if err = r.connect(ctx, &seen); err == nil {
			err = r.report(ctx, seen)
		}
	}
	return apply.Result(ctrl.Result{RequeueAfter: r.LookAgain}, err)
}

func (r *Reconciler) observe(ctx context.Context) (observed, error) {
	var list v1alpha2.ClusterSetList
	if err := r.Local.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return observed{}, err
	}
	seen := observed{state: r.Link.State()}
	seen.set, seen.surplus = clusterset.ServingOf(list)
	if seen.set == nil {
		return seen, nil
	}
	if seen.set.DeletionTimestamp.IsZero() {
		r.Link.Bind() // before anything can go wrong on the way to the leader
	}
	claims, err := r.claims(ctx, seen.set)
	if err != nil {
		return observed{}, err
	}
	if seen.id, seen.problem = clusterset.ResolveID(seen.set, claims); seen.problem == nil {
		secret, err := r.secret(ctx, seen.set)
		if err != nil {
			return observed{}, err
		}
		seen.access, seen.problem = clusterset.MemberAccess(seen.set, seen.id, secret, r.AllowLoopback)
	}
	if area := r.Link.Area(); area.Ready() {
		announce, err := area.Announce(ctx)
		if err != nil {
			return observed{}, err
		}
		seen.announced, seen.answered = announce != nil, clusterset.ReadAnswer(announce).Seen
	}
	if seen.awaited, err = r.awaited(ctx, seen); err != nil {
		return seen, err
	}
	seen.conflicts, err = r.conflicts(ctx)
	return seen, err
}

// conflicts repeats on the ClusterSet, where people look first, what the
// ClusterInfoImports say.
func (r *Reconciler) conflicts(ctx context.Context) (map[string]string, error) {
	var networks v1alpha1.ClusterInfoImportList
	if err := r.Local.List(ctx, &networks, client.InNamespace(r.Namespace)); err != nil {
		return nil, err
	}
	return fabric.Told(networks.Items), nil
}

// claims are the legacy ClusterClaims, asked for only when they can matter.
func (r *Reconciler) claims(ctx context.Context, set *v1alpha2.ClusterSet) ([]v1alpha2.ClusterClaim, error) {
	if !r.ClaimsServed || set.Spec.ClusterID != "" {
		return nil, nil
	}
	var claims v1alpha2.ClusterClaimList
	err := r.Uncached.List(ctx, &claims, client.InNamespace(r.Namespace))
	return claims.Items, err
}

// secret is read past the cache, which knows of Secrets only that they changed:
// the Namespace holds many, of others, whose content is none of this process's
// business.
func (r *Reconciler) secret(ctx context.Context, set *v1alpha2.ClusterSet) (*corev1.Secret, error) {
	if len(set.Spec.Leaders) == 0 || set.Spec.Leaders[0].Secret == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := r.Uncached.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: set.Spec.Leaders[0].Secret}, secret)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return secret, nil
}
