package remote

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Area is one open connection to a common area. Its identity never changes; a
// new access makes a new Area.
type Area struct {
	clusterset.Access
	// Opened is when this connection was begun.
	Opened time.Time
	// Direct reads and writes past every cache.
	Direct client.Client

	// facts never leave the leader's hop: exports of this member, imports, and
	// this member's announce. slices are watched only when the leader is our
	// own, because upstream grants no right to them.
	facts, slices part
	ledger        ledger
	trust         trust
	refusals      refusals
	gate          gate // of Direct
	// owed are the exports beside those of Services that a session waits for.
	owed func() []owing

	// life ends with the area; its goroutines are tied to it, calls are not.
	life context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	exchange clusterset.Exchange
	admitted bool
}

// part is one group of caches and whether they hold the world yet.
type part struct {
	cache    cache.Cache
	followed bool // guarded by Link.mu; a cache can be started once
	synced   bool // guarded by Area.mu
}

// Settings are equal for all areas of a Link.
type Settings struct {
	// QPS and Burst limit requests to the leader's API server; zero means 500
	// and 1000. Upstream's 100 and 200 make a thousand exports take a minute.
	QPS   float32
	Burst int
	// UserAgent as the leader's audit log shows it.
	UserAgent string
	// Wrap sees every request that leaves for the leader; nil means nobody does.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Now is the clock of the process; nil means the machine's.
	Now func() time.Time
}

func (s Settings) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// openArea prepares clients and caches; it contacts nobody. Doubts about what
// the caches show are told to doubt.
func openArea(access clusterset.Access, settings Settings, doubt func()) (*Area, error) {
	config := restConfig(access, settings)
	area := &Area{Access: access, Opened: settings.now(), trust: trust{raised: doubt}, owed: func() []owing { return nil }}
	var err error
	if area.Direct, err = direct(access, area.gate.wrap(config)); err != nil {
		return nil, err
	}
	config = area.refusals.wrap(area.trust.wrap(config))
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the view of the common area at %s: %w", access.Server, err)
	}
	options := cache.Options{
		HTTPClient: httpClient, Scheme: scheme.New(), Mapper: scheme.AreaMapper(),
		DefaultNamespaces:           map[string]cache.Config{access.Namespace: {}},
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.ResourceExport{}:        {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelSourceClusterID: access.ClusterID})},
			&v1alpha1.MemberClusterAnnounce{}: {Field: fields.OneTermEqualSelector("metadata.name", identity.AnnounceName(access.ClusterID))},
		},
	}
	for object, by := range options.ByObject {
		by.Namespaces = map[string]cache.Config{access.Namespace: {LabelSelector: by.Label, FieldSelector: by.Field}}
		options.ByObject[object] = by
	}
	if area.facts.cache, err = cache.New(config, options); err != nil {
		return nil, fmt.Errorf("cannot prepare the view of the common area at %s: %w", access.Server, err)
	}
	options.ByObject = nil
	if area.slices.cache, err = cache.New(config, options); err != nil {
		return nil, fmt.Errorf("cannot prepare the view of endpoints at %s: %w", access.Server, err)
	}
	return area, nil
}

// Ready tells whether the facts of the common area can be read.
func (a *Area) Ready() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.facts.synced
}

// Admitted tells whether the announce in the area is this cluster's, as the last
// heartbeat found it. Until then what was published under the cluster ID may be
// another cluster's, and is nothing to write to or to withdraw.
func (a *Area) Admitted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.admitted
}

// Exchange is how endpoints travel, as far as they can be read already: unknown
// while the leader has not answered or the slices are still being listed.
func (a *Area) Exchange() clusterset.Exchange {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.exchange != clusterset.ExchangeWire && !a.slices.synced {
		return clusterset.ExchangeUnknown
	}
	return a.exchange
}

// Published names the session in which every export of this member has been
// compared with the common area; empty while that is not so.
func (a *Area) Published() string {
	if a.Exchange() == clusterset.ExchangeUnknown {
		return ""
	}
	return a.ledger.settled()
}

// Session is what Settle wants to hear; ask before looking at the area.
func (a *Area) Session() string { return a.ledger.current() }

// Settle marks a key as compared, if the session is still that one; see
// Link.Expect.
func (a *Area) Settle(session string, key types.NamespacedName) { a.ledger.settle(session, key) }

// partOf says which part of the area shows a kind.
func (a *Area) partOf(object runtime.Object) *part {
	if _, ok := object.(*discoveryv1.EndpointSlice); ok {
		return &a.slices
	}
	return &a.facts
}
