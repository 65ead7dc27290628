package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podaddr"
	"github.com/lockstep-dev/lockstep/internal/lab/node/refwatch"
)

const (
	// workers is how many Pods are looked at at once. Almost all of a look is
	// waiting for the API server, which two cores keep busy with this many.
	workers = 16
	// A look that failed is repeated after retryFirst, doubling to retryLast.
	retryFirst, retryLast = 20 * time.Millisecond, 5 * time.Second
	// callTimeout bounds a call to the API server on behalf of a Pod. A frozen
	// server must not hold the worker for long: the Pod's processes wait too.
	callTimeout = 3 * time.Second
	// farewell is how long processes may take to end when the agent ends.
	farewell = 2 * time.Second
	// fieldManager is the name under which the agent writes.
	fieldManager = "lockstep-lab-node"
)

// Agent is the node agent of one cluster.
type Agent struct {
	options Options
	log     *slog.Logger
	client  kubernetes.Interface
	pool    *podaddr.Pool
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	refs    *refwatch.Watches
	store   cache.Store          // all Pods; set by Run
	events  record.EventRecorder // set by Run
	// background are the goroutines that wait for processes and run probes.
	background sync.WaitGroup

	mu sync.Mutex
	// known are the Pods with local containers. Only the worker that holds a
	// Pod's name changes its entry.
	known map[types.NamespacedName]*localPod
}

// Run serves the node until ctx ends, and then ends all its processes. An
// agent runs once.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: a.client.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "lockstep-lab-node", Host: a.options.Name})

	factory := informers.NewSharedInformerFactoryWithOptions(a.client, 0, informers.WithTransform(withoutManagedFields))
	informer := factory.Core().V1().Pods().Informer()
	a.store = informer.GetStore()
	handler, err := informer.AddEventHandler(a.handler())
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel() // before Shutdown, which waits for the informer
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return nil
	}
	if err := a.adopt(); err != nil {
		return err
	}
	a.serve(ctx)
	return nil
}

// serve works until ctx ends, and leaves no process and no goroutine behind.
func (a *Agent) serve(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { a.beat(ctx) })
	for range workers {
		loops.Go(func() { a.work(ctx) })
	}
	<-ctx.Done()
	a.queue.ShutDown()
	loops.Wait()
	a.endProcesses()
	a.background.Wait()
	a.refs.Wait()
}

func (a *Agent) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(current any) { a.queue.Add(keyOf(current.(*corev1.Pod))) },
		UpdateFunc: func(old, current any) {
			// A Pod deleted and created again between two looks is one update.
			if before := old.(*corev1.Pod); before.UID != current.(*corev1.Pod).UID {
				a.pool.Release(string(before.UID))
			}
			a.queue.Add(keyOf(current.(*corev1.Pod)))
		},
		DeleteFunc: func(last any) {
			if unknown, ok := last.(cache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}
			pod := last.(*corev1.Pod)
			a.pool.Release(string(pod.UID))
			a.queue.Add(keyOf(pod))
		},
	}
}

// adopt takes over what an earlier agent left: the addresses of Pods, before
// any new one is given out, and the folders of Pods that are gone.
func (a *Agent) adopt() error {
	for _, item := range a.store.List() {
		pod := item.(*corev1.Pod)
		if pod.Spec.NodeName != a.options.Name || pod.Status.PodIP == "" || ended(pod) {
			continue
		}
		if _, err := a.address(pod); err != nil {
			return err
		}
	}
	return a.folder().sweep(a.present())
}

func (a *Agent) work(ctx context.Context) {
	for {
		key, shutdown := a.queue.Get()
		if shutdown {
			return
		}
		again, err := a.reconcile(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil:
			a.log.Debug("look at Pod failed, will be repeated", "pod", key.String(), "error", err)
			a.queue.AddRateLimited(key)
		default:
			a.queue.Forget(key)
			if !again.IsZero() {
				a.queue.AddAfter(key, time.Until(again))
			}
		}
		a.queue.Done(key)
	}
}

// endProcesses ends all processes, side by side.
func (a *Agent) endProcesses() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	var ends sync.WaitGroup
	for _, p := range a.processes() {
		ends.Go(func() {
			if err := p.handle.Stop(ctx); err != nil {
				a.log.Error("process was not ended", "error", err)
			}
		})
	}
	ends.Wait()
}

// withoutManagedFields halves what a cached Pod weighs.
func withoutManagedFields(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return object, nil
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// ended reports whether a Pod is in its last phase.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// earliest is the earlier of two times, where zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
