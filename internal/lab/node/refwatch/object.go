package refwatch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
)

// object is one watched object. It is also the store into which its reflector
// writes, which tells what a full informer would not: that the object was
// looked for and does not exist.
type object struct {
	watches *Watches
	stop    context.CancelFunc

	// The rest is guarded by watches.mu.
	users map[types.NamespacedName]bool
	// read is whether the object has been looked for; current is nil when it
	// does not exist.
	read    bool
	current any
}

// start begins to watch an object. The caller holds w.mu.
func (w *Watches) start(ctx context.Context, k key) {
	ctx, stop := context.WithCancel(ctx)
	o := &object{watches: w, stop: stop, users: map[types.NamespacedName]bool{}}
	w.watched[k] = o
	lw, kind := w.listWatch(k)
	reflector := cache.NewReflectorWithOptions(lw, kind, o, cache.ReflectorOptions{Name: "pod reference"})
	w.running.Go(func() { reflector.RunWithContext(ctx) })
}

func (w *Watches) listWatch(k key) (cache.ListerWatcher, runtime.Object) {
	if k.Kind == podref.Secret {
		return listWatch(w.client, k.Name, w.client.CoreV1().Secrets(k.namespace)), &corev1.Secret{}
	}
	return listWatch(w.client, k.Name, w.client.CoreV1().ConfigMaps(k.namespace)), &corev1.ConfigMap{}
}

// lister is what the typed clients of both kinds have in common.
type lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func listWatch[L runtime.Object](set kubernetes.Interface, name string, client lister[L]) cache.ListerWatcher {
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		return o
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, only(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, only(o))
		},
	}, set) // the set says whether its lists can be streamed; a fake one cannot
}

var _ cache.ReflectorStore = (*object)(nil)

// Add implements cache.ReflectorStore.
func (o *object) Add(current any) error {
	o.watches.update(o, current)
	return nil
}

// Update implements cache.ReflectorStore.
func (o *object) Update(current any) error {
	o.watches.update(o, current)
	return nil
}

// Delete implements cache.ReflectorStore.
func (o *object) Delete(any) error {
	o.watches.update(o, nil)
	return nil
}

// Replace implements cache.ReflectorStore: it is told the whole world, which
// is this object or nothing.
func (o *object) Replace(all []any, _ string) error {
	if len(all) == 0 {
		o.watches.update(o, nil)
		return nil
	}
	o.watches.update(o, all[0])
	return nil
}

// Resync implements cache.ReflectorStore.
func (o *object) Resync() error { return nil }
