package node

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/lockstep-dev/lockstep/internal/lab/node/downward"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podaddr"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podstate"
	"github.com/lockstep-dev/lockstep/internal/lab/node/volume"
)

// obstacleRetry is how soon volumes that could not be filled are tried again.
const obstacleRetry = time.Second

// observed is what a look at a Pod has found.
type observed struct {
	pod *corev1.Pod
	// local and part are nil for a Pod without local containers.
	local         *localPod
	part          *corev1.Pod
	podIP, hostIP netip.Addr
	facts         downward.Facts
	objects       podref.Objects
	// obstacle keeps containers from starting.
	obstacle *corev1.ContainerStateWaiting
	// lookAgain is when a token is due for renewal, or an obstacle for a try.
	lookAgain time.Time
}

// now is the view on which to decide.
func (o *observed) now() podstate.Seen {
	seen := podstate.Seen{Now: time.Now(), Pod: o.pod, PodIP: o.podIP, HostIP: o.hostIP, Obstacle: o.obstacle}
	if o.local != nil {
		seen.Runs = o.local.state()
	}
	return seen
}

// observe reads what a decision on the Pod depends on, and brings its volumes
// up to date.
func (a *Agent) observe(ctx context.Context, pod *corev1.Pod) (*observed, error) {
	podIP, err := a.address(pod)
	if err != nil {
		return nil, err
	}
	o := &observed{pod: pod, podIP: podIP, hostIP: a.pool.Node()}
	if o.part = localPart(pod, a.options.Images); o.part == nil {
		return o, nil
	}
	o.local = a.ensureLocal(o.part)
	o.pod = newest(pod, o.local.written)
	o.facts = downward.Facts{
		PodIP: podaddr.Twin(podIP), HostIP: podaddr.Twin(o.hostIP), Allocatable: allocatable(),
	}
	if pod.DeletionTimestamp == nil && !ended(pod) {
		a.prepare(ctx, o)
	} else {
		a.refs.Forget(o.local.key) // nothing will be started any more
	}
	return o, nil
}

// prepare fills the volumes; what stands in the way becomes an obstacle, and
// an event when it is a new one.
func (a *Agent) prepare(ctx context.Context, o *observed) {
	if err := refuse(o.part, o.facts); err != nil {
		a.complain(o, "Refused", err)
		return
	}
	objects, known := a.refs.Objects(ctx, o.local.key, podref.Of(o.part))
	if !known { // the watch calls when it has looked
		o.obstacle = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		return
	}
	o.objects = objects
	if err := a.fillVolumes(ctx, o); err != nil {
		a.complain(o, "FailedMount", err)
		// Not all that fails here is something a watch tells about.
		o.lookAgain = earliest(o.lookAgain, time.Now().Add(obstacleRetry))
		return
	}
	o.local.complaint = ""
}

func (a *Agent) complain(o *observed, reason string, err error) {
	o.obstacle = &corev1.ContainerStateWaiting{Reason: reason, Message: err.Error()}
	if o.local.complaint != err.Error() {
		o.local.complaint = err.Error()
		a.events.Event(o.pod, corev1.EventTypeWarning, reason, err.Error())
	}
}

// address is the address of a Pod. One that has ended needs none any more.
func (a *Agent) address(pod *corev1.Pod) (netip.Addr, error) {
	current, _ := netip.ParseAddr(pod.Status.PodIP) // empty before the first status
	switch {
	case pod.Spec.HostNetwork:
		return a.pool.Node(), nil
	case ended(pod):
		a.pool.Release(string(pod.UID))
		return current, nil
	}
	return a.pool.Take(string(pod.UID), current)
}

// ensureLocal returns what is known of a Pod with local containers.
func (a *Agent) ensureLocal(part *corev1.Pod) *localPod {
	key := keyOf(part)
	if known := a.local(key); known != nil {
		return known
	}
	var names []string
	for c := range containers(part) {
		names = append(names, c.Name)
	}
	local := &localPod{
		key: key, uid: part.UID, folder: a.folder().of(part),
		tokens:    map[volume.TokenSpec]token{},
		runs:      podstate.Recover(part, names, time.Now()),
		processes: map[string]*process{},
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[key] = local
	return local
}

// newest is the later version of a Pod.
func newest(cached, written *corev1.Pod) *corev1.Pod {
	if written == nil {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion)
	if err != nil || order >= 0 {
		return cached
	}
	return written
}
