package refwatch_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
	"github.com/lockstep-dev/lockstep/internal/lab/node/refwatch"
)

func TestObjects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "shop"}, Data: map[string]string{"a": "1"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "other"}},
	)
	// Watches of our own, because the fake client loses what happens between
	// its list and its watch.
	configMaps, secrets := watch.NewFake(), watch.NewFake()
	client.PrependWatchReactor("configmaps", clienttesting.DefaultWatchReactor(configMaps, nil))
	client.PrependWatchReactor("secrets", clienttesting.DefaultWatchReactor(secrets, nil))
	changes := make(chan types.NamespacedName, 100)
	watches := refwatch.New(client, func(pod types.NamespacedName) { changes <- pod })
	t.Cleanup(func() {
		cancel()
		watches.Wait()
	})
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	refs := []podref.Ref{{Kind: podref.ConfigMap, Name: "settings"}, {Kind: podref.Secret, Name: "login"}}
	until := func(what string, ok func(podref.Objects, bool) bool) {
		t.Helper()
		deadline := time.After(10 * time.Second)
		for {
			if objects, known := watches.Objects(ctx, web, refs); ok(objects, known) {
				return
			}
			select {
			case pod := <-changes:
				if pod != web {
					t.Fatalf("a change was reported to %v", pod)
				}
			case <-deadline:
				objects, known := watches.Objects(ctx, web, refs)
				t.Fatalf("not in time: %s; have %v, known %v", what, objects, known)
			}
		}
	}
	until("the ConfigMap is read, and the Secret known to be absent", func(o podref.Objects, known bool) bool {
		return known && o.ConfigMaps["settings"].Data["a"] == "1" && o.Secrets["login"] == nil
	})
	secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: "shop"}})
	until("the Secret appears", func(o podref.Objects, _ bool) bool { return o.Secrets["login"] != nil })
	configMaps.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "shop"}})
	until("the ConfigMap disappears", func(o podref.Objects, known bool) bool { return known && o.ConfigMaps["settings"] == nil })
	watches.Forget(web)
	watches.Forget(web) // twice is once
}
