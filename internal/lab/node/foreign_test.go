package node_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

var foreignPods = flag.Int("foreign", 500, "how many Pods of unknown images TestForeignPods creates")

// Pods of unknown images become ready without a process and without a
// goroutine each, are written once, and go at once.
func TestForeignPods(t *testing.T) {
	b := newBench(t)
	seen := b.countChanges()
	goroutines := runtime.NumGoroutine()
	begin := time.Now()
	b.createForeign(*foreignPods)
	created := time.Since(begin)
	b.eventually("all Pods are ready", func(context.Context) error { return seen.want(*foreignPods) })
	t.Logf("%d Pods created in %s, ready %s after the first, %d goroutines more",
		*foreignPods, created.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), runtime.NumGoroutine()-goroutines)
	if more := runtime.NumGoroutine() - goroutines; more > *foreignPods/10 {
		t.Errorf("%d Pods need %d goroutines", *foreignPods, more)
	}
	// Created, bound, ready: three versions of each Pod and no more.
	if changes := seen.count(); changes > 3**foreignPods {
		t.Errorf("%d Pods changed %d times; want 3 each", *foreignPods, changes)
	}
	begin = time.Now()
	err := b.client.CoreV1().Pods(b.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.noPods("foreign")
	t.Logf("deleted in %s", time.Since(begin).Round(time.Millisecond))
}

func (b *bench) createForeign(n int) {
	b.Helper()
	pods := b.client.CoreV1().Pods(b.namespace)
	numbers := make(chan int)
	var creators sync.WaitGroup
	for range 16 {
		creators.Go(func() {
			for i := range numbers {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("foreign-", i), Labels: map[string]string{"app": "foreign"}},
					Spec:       corev1.PodSpec{NodeSelector: onNode(), Containers: []corev1.Container{{Name: "main", Image: "nginx:1", ReadinessProbe: healthz()}}},
				}
				pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
				if _, err := pods.Create(b.Context(), pod, metav1.CreateOptions{}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	creators.Wait()
}

// changes counts what a watcher of the test's Pods sees.
type changes struct {
	mu    sync.Mutex
	total int
	// addresses are those of ready Pods, with their owner.
	addresses map[string]string
	clash     error
}

// countChanges watches through an informer, because the API server cuts a
// plain watch that cannot keep up.
func (b *bench) countChanges() *changes {
	b.Helper()
	c := &changes{addresses: map[string]string{}}
	factory := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithNamespace(b.namespace))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { c.add(pod.(*corev1.Pod)) },
		UpdateFunc: func(_, pod any) { c.add(pod.(*corev1.Pod)) },
	})
	if err != nil {
		b.Fatal(err)
	}
	factory.StartWithContext(b.Context())
	b.Cleanup(factory.Shutdown) // runs when the context has ended
	return c
}

func (c *changes) add(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod.DeletionTimestamp != nil {
		return
	}
	c.total++
	if !isReady(pod) {
		return
	}
	if owner, held := c.addresses[pod.Status.PodIP]; held && owner != pod.Name {
		c.clash = fmt.Errorf("%s is the address of %s and %s", pod.Status.PodIP, owner, pod.Name)
	}
	c.addresses[pod.Status.PodIP] = pod.Name
}

func (c *changes) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

func (c *changes) want(ready int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clash == nil && len(c.addresses) < ready {
		return fmt.Errorf("%d are ready, %d events", len(c.addresses), c.total)
	}
	return c.clash
}
