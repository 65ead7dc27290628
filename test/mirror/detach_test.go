package mirror_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/blast"
)

// A dry run names what would go, and refuses; it changes nothing.
//
// covers: D-11, D-12, D-16, F-01, F-05
func TestDetach(t *testing.T) {
	p := newPair(t)
	p.fill(0, 100, 10)
	p.put(keys+"orphan", object("orphan", "orphan", 1, "gone"))
	p.put(keys+"child", object("child", "child", 1, "orphan"))
	if _, errOut, code := p.call("mirror", "detach", "--dry-run"); code != 3 || !strings.Contains(errOut, "nothing has been copied") {
		t.Errorf("before the first copy it ends with %d: %s", code, errOut)
	}
	p.start("a")
	p.mustBeEqual()
	if _, errOut, code := p.call("mirror", "detach"); code != 2 || !strings.Contains(errOut, "--dry-run") {
		t.Errorf("without --dry-run it ends with %d: %s", code, errOut)
	}
	out, errOut, code := p.call("mirror", "detach", "--dry-run", "--once", "-o", "json")
	var answer struct {
		Outcome     string
		Findings    []struct{ Rule, Severity string }
		BlastRadius []struct {
			Verb   string
			Object struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 3 || answer.Outcome != "Refused" {
		t.Fatalf("it ends with %d: %v %s %s", code, err, out, errOut)
	}
	var rules, names []string
	for _, f := range answer.Findings {
		rules = append(rules, f.Rule+" "+f.Severity)
	}
	for _, e := range answer.BlastRadius {
		names = append(names, e.Verb+" "+e.Object.Name)
	}
	if want := []string{"D-12 REFUSE", "D-16 REFUSE", "F-01 REFUSE", "F-05 REFUSE", "D-11 WAIT", "DET-E WAIT", "F-06 WARN"}; !slices.Equal(rules, want) {
		t.Errorf("findings %v, want %v", rules, want)
	}
	if want := []string{"delete child", "delete orphan"}; !slices.Equal(names, want) {
		t.Errorf("the blast radius is %v, want %v", names, want)
	}
	text, _, _ := p.call("mirror", "detach", "--dry-run", "--once")
	if !strings.Contains(text, "delete ConfigMap shop/orphan: its owner ConfigMap shop/gone (UID gone) is absent") {
		t.Errorf("the text is\n%s", text)
	}
	p.mustBeEqual()

	// When nothing dangles, a guard is there, and the garbage collector is young
	// enough, only the second cut is missing.
	for _, name := range []string{"orphan", "child"} {
		if _, err := p.from.Delete(t.Context(), keys+name); err != nil {
			t.Fatal(err)
		}
	}
	p.own("/registry/configmaps/kube-public/etcd-sync", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"etcd-sync","namespace":"kube-public","uid":"mark"}}`)
	p.own("/registry/leases/kube-system/kube-controller-manager", leading(t, time.Now()))
	p.fill(500, 501, 10) // the cut that is looked at is one after these
	p.mustBeEqual()
	before := time.Now().Add(-time.Hour).Format(time.RFC3339)
	out, errOut, code = p.call("mirror", "detach", "--dry-run", "--once", "--repaired-before", before, "-o", "json")
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 4 || answer.Outcome != "Wait" || len(answer.Findings) != 1 || answer.Findings[0].Rule != "D-11" || len(answer.BlastRadius) > 0 {
		t.Errorf("with one clean cut it ends with %d: %v %s %s", code, err, out, errOut)
	}
	if _, errOut, code := p.call("mirror", "detach", "--dry-run", "--once", "--repaired-before", "noon"); code != 2 || !strings.Contains(errOut, "noon") {
		t.Errorf("with a time that is none it ends with %d: %s", code, errOut)
	}
}

// own writes a key of the standby's own.
func (p *pair) own(key, value string) {
	p.t.Helper()
	if _, err := p.to.Put(p.t.Context(), key, value); err != nil {
		p.t.Fatal(err)
	}
}

// leading is the Lease of a controller manager, as an API server stores it.
func leading(t *testing.T, since time.Time) string {
	t.Helper()
	at := metav1.NewMicroTime(since)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager", Namespace: "kube-system", UID: "lease"}, Spec: coordinationv1.LeaseSpec{AcquireTime: &at}}
	raw, err := lease.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	text, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(text)
}

// What a real garbage collector deletes after a hundred corruptions, twenty at a
// time, is what was predicted from the moment in which they were planted.
//
// covers: F-01
func TestPredictionIsWhatTheGarbageCollectorDeletes(t *testing.T) {
	for round := range 5 {
		t.Run(fmt.Sprint(round), func(t *testing.T) { predictionRound(t, fmt.Sprintf("prediction-%d", round)) })
	}
}

func predictionRound(t *testing.T, namespace string) {
	l := clusters.Lab(t)
	standby := labtest.Cluster(t, l, "standby")
	api, ctx := client(t, standby), t.Context()
	raw, err := standby.EtcdClient(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	p := &pair{t: t}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	const members = 120
	if _, err := api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A family: most have one or two owners among those before them.
	yes := true
	family := make([]*corev1.ConfigMap, 0, members)
	for i := range members {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%03d", i)}}
		for range min(i, random.IntN(3)) {
			owner := family[random.IntN(len(family))]
			if !slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
				c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &yes})
			}
		}
		switch random.IntN(8) {
		case 0:
			c.Finalizers = []string{"lockstep.dev/held"}
		case 1:
			c.Finalizers = []string{"foregroundDeletion"}
		}
		made, err := api.CoreV1().ConfigMaps(namespace).Create(ctx, c, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		family = append(family, made)
	}
	rev := corrupt(t, raw, random, "/registry/configmaps/"+namespace+"/", family)
	// One that has been running takes an object with another UID for the same, until
	// it is started again; so it is before a detach (DET-E).
	if err := standby.Restart(ctx, "kube-controller-manager"); err != nil {
		t.Fatal(err)
	}

	w, before := blast.NewWorld(nil), map[string]bool{}
	all, err := raw.Get(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(rev))
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		w.Add(blast.Object{Key: string(kv.Key), Value: kv.Value, Mirrored: true})
		if name, ok := strings.CutPrefix(string(kv.Key), "/registry/configmaps/"+namespace+"/m"); ok {
			before["m"+name] = true
		}
	}
	predicted := map[string]bool{}
	for _, e := range w.Predict().Effects {
		if e.Thing.Namespace == namespace && e.By == blast.Collector {
			predicted[e.Thing.Name] = true
		}
	}
	doomed := func(ctx context.Context) (missing, extra []string) {
		for name := range before {
			got, err := api.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			switch deleted := err != nil || got.DeletionTimestamp != nil; {
			case deleted && !predicted[name]:
				extra = append(extra, name)
			case !deleted && predicted[name]:
				missing = append(missing, name)
			}
		}
		return missing, extra
	}
	p.await("the garbage collector deletes what was predicted", func() error {
		if missing, extra := doomed(ctx); len(missing)+len(extra) > 0 {
			return fmt.Errorf("of %d predicted it has not deleted %v; not predicted were %v", len(predicted), missing, extra)
		}
		return nil
	})
	// It has worked off its queue when something younger is gone.
	last := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "last", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "0"}}}}
	if _, err := api.CoreV1().ConfigMaps(namespace).Create(ctx, last, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await("the garbage collector has seen all", func() error {
		if _, err := api.CoreV1().ConfigMaps(namespace).Get(ctx, "last", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the last object is there: %v", err)
		}
		return nil
	})
	if missing, extra := doomed(ctx); len(missing)+len(extra) > 0 {
		t.Errorf("not deleted were %v, not predicted %v", missing, extra)
	}
	t.Logf("%d of %d were deleted, all predicted", len(predicted), len(before))
}

// corrupt takes ten objects away and gives ten others another UID, in one
// revision, which it returns.
func corrupt(t *testing.T, raw *clientv3.Client, random *rand.Rand, prefix string, family []*corev1.ConfigMap) int64 {
	t.Helper()
	var ops []clientv3.Op
	for n, i := range random.Perm(len(family))[:20] {
		key := prefix + family[i].Name
		if n%2 == 0 {
			ops = append(ops, clientv3.OpDelete(key))
			continue
		}
		answer, err := raw.Get(t.Context(), key)
		if err != nil || len(answer.Kvs) != 1 {
			t.Fatalf("%s: %v", key, err)
		}
		uid := []byte(family[i].UID)
		other := slices.Clone(uid)
		copy(other, "00000000")
		ops = append(ops, clientv3.OpPut(key, string(bytes.ReplaceAll(answer.Kvs[0].Value, uid, other))))
	}
	answer, err := raw.Txn(t.Context()).Then(ops...).Commit()
	if err != nil {
		t.Fatal(err)
	}
	return answer.Header.Revision
}
