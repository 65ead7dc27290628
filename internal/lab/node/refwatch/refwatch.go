// Package refwatch watches single ConfigMaps and Secrets: those that the Pods
// of a node refer to, each once, for as long as one of them does.
//
// A watch of all Secrets would be simpler and would show a node what is not
// its business; a poll would be late.
package refwatch

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
)

// key is one watched object.
type key struct {
	namespace string
	podref.Ref
}

// Watches holds the watched objects.
type Watches struct {
	client  kubernetes.Interface
	changed func(pod types.NamespacedName)

	mu sync.Mutex
	// watched are the objects somebody refers to; users and wanted are each
	// other's inverse, and say who.
	watched map[key]*object
	wanted  map[types.NamespacedName]map[key]bool

	running sync.WaitGroup
}

// New returns Watches that report to changed, which must not block, each Pod
// that refers to an object that was read for the first time or has changed.
func New(client kubernetes.Interface, changed func(pod types.NamespacedName)) *Watches {
	return &Watches{
		client:  client,
		changed: changed,
		watched: map[key]*object{},
		wanted:  map[types.NamespacedName]map[key]bool{},
	}
}

// Objects returns what a Pod refers to, and watches that from now on and
// nothing else for this Pod. known is false while some object has not been
// looked for yet; the Pod is reported when that has been done. The watches end
// with ctx.
func (w *Watches) Objects(ctx context.Context, pod types.NamespacedName, refs []podref.Ref) (objects podref.Objects, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := make(map[key]bool, len(refs))
	for _, ref := range refs {
		k := key{pod.Namespace, ref}
		wanted[k] = true
		if w.watched[k] == nil {
			w.start(ctx, k)
		}
		w.watched[k].users[pod] = true
	}
	w.leave(pod, wanted)
	return w.collect(wanted)
}

// Forget ends the watches only this Pod needed.
func (w *Watches) Forget(pod types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave(pod, nil)
}

// Wait returns when all watches have ended; the context they were started with
// must have ended.
func (w *Watches) Wait() { w.running.Wait() }

// leave makes wanted all that a Pod refers to.
func (w *Watches) leave(pod types.NamespacedName, wanted map[key]bool) {
	for k := range w.wanted[pod] {
		if wanted[k] {
			continue
		}
		o := w.watched[k]
		delete(o.users, pod)
		if len(o.users) == 0 {
			o.stop()
			delete(w.watched, k)
		}
	}
	delete(w.wanted, pod)
	if len(wanted) > 0 {
		w.wanted[pod] = wanted
	}
}

func (w *Watches) collect(wanted map[key]bool) (objects podref.Objects, known bool) {
	objects = podref.Objects{ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]*corev1.Secret{}}
	known = true
	for k := range wanted {
		o := w.watched[k]
		known = known && o.read
		switch current := o.current.(type) {
		case *corev1.ConfigMap:
			objects.ConfigMaps[k.Name] = current
		case *corev1.Secret:
			objects.Secrets[k.Name] = current
		}
	}
	return objects, known
}

// update takes news of an object; current is nil when it does not exist.
func (w *Watches) update(o *object, current any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.current, o.read = current, true
	for pod := range o.users {
		w.changed(pod)
	}
}
