package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/kube/metrics"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/kube/role"
	"github.com/lockstep-dev/lockstep/internal/kube/served"
	"github.com/lockstep-dev/lockstep/internal/member/admission"
	"github.com/lockstep-dev/lockstep/internal/member/clusterinfo"
	"github.com/lockstep-dev/lockstep/internal/member/exporter"
	"github.com/lockstep-dev/lockstep/internal/member/gateway"
	"github.com/lockstep-dev/lockstep/internal/member/heartbeat"
	"github.com/lockstep-dev/lockstep/internal/member/importer"
	"github.com/lockstep-dev/lockstep/internal/member/label"
	"github.com/lockstep-dev/lockstep/internal/member/membership"
	"github.com/lockstep-dev/lockstep/internal/member/policy"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
	policies "github.com/lockstep-dev/lockstep/internal/plan/policy"
)

// Options of a member controller.
type Options struct {
	role.Options
	// Mode: addresses of Services or of Pods are exported.
	Mode v1alpha1.EndpointIPType
	// Network is what the configuration says of this cluster's network.
	Network Network
	// AllowLoopback accepts a leader on this machine itself; for labs.
	AllowLoopback bool
	// Labels: other clusters are told of the labels of Pods here, for policies that
	// reach across clusters.
	Labels bool
	// CleanUpAfter is how long the leader bears a silent member; zero means a day.
	CleanUpAfter time.Duration
}

func (o Options) periods() clusterset.Periods {
	periods := clusterset.NewPeriods(o.Scale)
	periods.CleanUpAfter = cmp.Or(o.CleanUpAfter, periods.CleanUpAfter)
	return periods
}

// Network of a member, as far as it is not found out.
type Network struct {
	// ServiceRange is the Service CIDR; the zero Prefix means: find out.
	ServiceRange netip.Prefix
	// PodCIDRs to tell other clusters of; none means that Pods are not reached
	// from there.
	PodCIDRs []netip.Prefix
	// Precedence says which address of the gateway Node other clusters use; empty
	// means private.
	Precedence fabric.Precedence
}

// Run is the member controller; it returns when ctx ends or leadership is lost.
func Run(ctx context.Context, server *rest.Config, options Options) error {
	meter := metrics.NewMember(options.Scale(clusterset.BeatTimeout), options.Now)
	mgr, err := assemble(ctx, meter.Count(server), options, meter)
	if err != nil {
		return role.Explain(err, server, options.Options)
	}
	return role.Start(ctx, mgr, options.Options, meter)
}

func assemble(ctx context.Context, server *rest.Config, options Options, meter *metrics.Member) (*role.Manager, error) {
	inNamespace := cache.ByObject{Namespaces: map[string]cache.Config{options.Namespace: {}}}
	kinds := map[client.Object]cache.ByObject{
		&v1alpha2.ClusterSet{}: inNamespace, &corev1.Secret{}: inNamespace,
		&v1alpha1.Gateway{}: inNamespace, &v1alpha1.ClusterInfoImport{}: inNamespace,
		&corev1.Node{}:               {Transform: local.TrimNode},
		&corev1.Pod{}:                {Transform: local.TrimPod},
		&discoveryv1.EndpointSlice{}: {Transform: local.TrimSlice}, &corev1.Namespace{}: {Transform: local.TrimNamespace},
	}
	for kind, how := range options.WebhookCaches(config.Member) {
		if _, isSecret := kind.(*corev1.Secret); !isSecret { // all of its Namespace are there already
			kinds[kind] = how
		}
	}
	mgr, err := role.NewManager(server, options.Options, cache.Options{ByObject: kinds})
	if err != nil {
		return nil, err
	}
	uid, err := clusterUID(ctx, mgr.GetAPIReader())
	if err != nil {
		return nil, err
	}
	if err := local.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	link := remote.NewLink(remote.Settings{
		UserAgent: "lockstep-member", Wrap: transport.Wrappers(meter.Transport(metrics.LeaderServer), mgr.Wrap), Now: options.Now,
	})
	meter.Link = link
	meter.Read(mgr)
	periods := options.periods()
	beater := &heartbeat.Beater{Link: link, ClusterUID: uid, Every: periods.BeatEvery, CleanUpAfter: periods.CleanUpAfter, Now: options.Now}
	renewer := &heartbeat.Renewer{Link: link, ClusterUID: uid, Every: periods.LeaseEvery, Timeout: periods.LeaseTimeout, Now: options.Now}
	for _, runnable := range []interface{ Start(context.Context) error }{link, beater, renewer} {
		if err := mgr.Add(runnable); err != nil {
			return nil, err
		}
	}
	return mgr, setup(ctx, mgr, link, uid, options, meter)
}

func setup(ctx context.Context, mgr *role.Manager, link *remote.Link, uid string, options Options, meter *metrics.Member) error {
	claims, err := role.ClaimsServed(mgr)
	if err != nil {
		return err
	}
	families, err := local.Families(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	serviceCIDRs, err := local.ServiceCIDRsServed(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder("lockstep-member")
	kinds := &served.Kinds{
		Config: mgr.GetConfig(), Each: []schema.GroupVersionKind{policies.Kind, policies.TierKind}, Every: options.Scale(30 * time.Second),
	}
	shared := &policy.Reconciler{Local: mgr.GetClient(), Link: link, Kinds: kinds, Events: recorder, Namespace: options.Namespace, Now: options.Now}
	meter.Policies = shared.Count
	return errors.Join(
		mgr.Add(kinds),
		shared.SetupWithManager(mgr, options.One()),
		(&label.Reconciler{
			Local: mgr.GetClient(), Link: link, Events: recorder, Namespace: options.Namespace, Enabled: options.Labels, Gather: options.Scale(time.Second),
		}).SetupWithManager(mgr, options.One()),
		(&membership.Reconciler{
			Local: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Link: link, Events: recorder,
			Namespace: options.Namespace, ClusterUID: uid, AllowLoopback: options.AllowLoopback, ClaimsServed: claims, Withheld: shared.Withheld,
			Timeout: options.Scale(clusterset.BeatTimeout), LookAgain: options.Scale(5 * time.Second), Now: options.Now,
		}).SetupWithManager(mgr, options.One()),
		(&exporter.Reconciler{
			Local: mgr.GetClient(), Link: link, Events: recorder, Mode: options.Mode,
			LookAgain: options.Scale(30 * time.Second), Now: options.Now,
		}).SetupWithManager(mgr, options.Controller()),
		(&importer.Reconciler{
			Local: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Families: families, Link: link, Events: recorder,
			Sight: options.periods().Sight, LookAgain: options.periods().LeaseEvery, Now: options.Now, Meter: meter,
		}).SetupWithManager(mgr, options.Controller()),
		(&gateway.Reconciler{
			Local: mgr.GetClient(), Events: recorder, Namespace: options.Namespace,
			ServiceRange: options.Network.ServiceRange, Precedence: options.Network.Precedence, ServiceCIDRs: serviceCIDRs,
			LookAgain: options.Scale(10 * time.Minute), Now: options.Now,
		}).SetupWithManager(mgr, options.One()),
		(&clusterinfo.Reconciler{
			Local: mgr.GetClient(), Link: link, Events: recorder, Namespace: options.Namespace,
			PodCIDRs: options.Network.podCIDRs(), Precedence: options.Network.Precedence,
			LookAgain: options.Scale(30 * time.Second), Now: options.Now,
		}).SetupWithManager(mgr, options.One()),
		options.Serve(mgr, config.Member, admission.Handler(mgr.GetAPIReader(), options.Namespace, meter)),
	)
}

func (n Network) podCIDRs() []string {
	var texts []string
	for _, cidr := range n.PodCIDRs {
		texts = append(texts, cidr.String())
	}
	return texts
}

// clusterUID is the UID of Namespace kube-system, by which clusters are told
// apart whatever ID they claim.
func clusterUID(ctx context.Context, c client.Reader) (string, error) {
	var system corev1.Namespace
	if err := c.Get(ctx, types.NamespacedName{Name: "kube-system"}, &system); err != nil {
		return "", fmt.Errorf("cannot read Namespace \"kube-system\", whose UID tells clusters apart: %w", err)
	}
	return string(system.UID), nil
}
