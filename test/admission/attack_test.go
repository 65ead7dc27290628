package admission_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// No credential of a member changes or hides what is another's, by any way of
// writing. docs/security.md lists what is tried, and what is answered.
//
// covers: ADM-LS-1, WK-7, WK-9, WK-32, WK-36
func TestAttempts(t *testing.T) {
	a := newArena(t)
	a.settle(t, east, "west")
	a.strangers(t)
	before := a.belongings(t, "west")
	for _, try := range everything() {
		for _, w := range try.ways {
			t.Run(try.by+"/"+try.what+"/"+w.name, func(t *testing.T) { a.check(t, try, w) })
		}
	}
	if diff := cmp.Diff(before, a.belongings(t, "west")); diff != "" {
		t.Errorf("what is west's has changed:\n%s", diff)
	}
}

// check makes one attempt and compares the answer. A conflict with the leader's
// own writes is no answer.
func (a *arena) check(t *testing.T, try attempt, w way) {
	t.Helper()
	var err error
	fleet.Eventually(t, try.what, func() error {
		err = a.attempt(t.Context(), try, w)
		if apierrors.IsConflict(err) || apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook") {
			return err
		}
		return nil
	})
	if problem := answered(err, try.answer); problem != nil {
		t.Error(problem)
	}
	if err != nil && strings.Contains(try.answer, "-") {
		for _, other := range []string{"west", "depot", "harbor"} {
			if said := strings.ReplaceAll(err.Error(), `"`+name(try)+`"`, ""); strings.Contains(said, other) && !strings.Contains(name(try), other) {
				t.Errorf("the answer tells of %q: %v", other, err)
			}
		}
	}
}

func name(try attempt) string {
	if try.object != nil {
		return try.object.GetName()
	}
	if try.forge != nil {
		return try.forge().GetName()
	}
	return ""
}

func (a *arena) attempt(ctx context.Context, try attempt, w way) error {
	ctx, cancel := within(ctx)
	defer cancel()
	c := a.clients[try.by]
	switch {
	case try.object != nil:
		// Read as the administrator: whoever tries may have got it elsewhere.
		object, ok := try.object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", try.object)
		}
		if err := a.Leader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		changed, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", object)
		}
		try.change(changed)
		return w.do(ctx, c, object, changed)
	case try.forge != nil:
		return w.do(ctx, c, nil, try.forge())
	}
	return w.do(ctx, c, nil, nil)
}

// answered complains about another answer than the one that is wanted.
func answered(err error, want string) error {
	right := false
	switch want {
	case allowed:
		right = err == nil
	case nobody:
		right = apierrors.IsUnauthorized(err)
	case noRight:
		right = apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "admission webhook")
	default:
		right = err != nil && strings.HasSuffix(err.Error(), "("+want+")") && strings.Contains(err.Error(), "admission webhook")
	}
	if !right {
		return fmt.Errorf("answered %v, want %s", err, want)
	}
	return nil
}

// belongings is all that a cluster has in the common area, as far as anybody but
// the leader could have changed it.
func (a *arena) belongings(t *testing.T, id string) map[string]any {
	t.Helper()
	found := map[string]any{}
	var exports v1alpha1.ResourceExportList
	var announces v1alpha1.MemberClusterAnnounceList
	var slices discoveryv1.EndpointSliceList
	var leases coordinationv1.LeaseList
	for _, list := range []client.ObjectList{&exports, &announces, &slices, &leases} {
		if err := a.Leader.List(t.Context(), list, client.InNamespace(area)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range exports.Items {
		if strings.HasPrefix(e.Name, id+"-") {
			found[e.Name] = []any{e.UID, e.Labels, e.Annotations, e.Finalizers, e.OwnerReferences, e.DeletionTimestamp, e.Spec}
			if len(e.Status.Conditions) > 0 && e.Status.Conditions[0].Message == "no" {
				t.Errorf("the status of %s was written by a member", e.Name)
			}
		}
	}
	for _, m := range announces.Items {
		if m.ClusterID == id {
			found[m.Name] = []any{m.UID, m.Labels, m.Annotations[v1alpha1.AnnotationTouch], m.Finalizers, m.OwnerReferences, m.DeletionTimestamp, m.ClusterSetID, m.LeaderClusterID}
		}
	}
	for _, s := range slices.Items {
		if strings.HasPrefix(s.Name, id) {
			found[s.Name] = []any{s.UID, s.Labels, s.Annotations, s.Finalizers, s.OwnerReferences, s.DeletionTimestamp, s.Endpoints}
		}
	}
	for _, l := range leases.Items {
		if l.Name == lease(id).Name {
			found["Lease "+l.Name] = []any{l.UID, l.Labels, l.Finalizers, l.OwnerReferences, l.DeletionTimestamp, l.Spec}
		}
	}
	if len(found) < 7 {
		t.Fatalf("west has only %d objects", len(found))
	}
	return found
}

var write = flag.Bool("update", false, "write the table of docs/security.md instead of comparing it")

const (
	tableBegins = "<!-- attempts begin: made by go test ./test/admission -run TestPage -update -->\n"
	tableEnds   = "<!-- attempts end -->\n"
)

// The page lists exactly what is tried.
func TestPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| who | tries | by | answer |\n| --- | --- | --- | --- |\n")
	number := 0
	for _, try := range everything() {
		var by []string
		for _, w := range try.ways {
			by = append(by, w.name)
		}
		number += len(by)
		who := try.by
		if !strings.Contains(who, " ") {
			who = "member `" + who + "`"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", who, try.what, strings.Join(by, "; "), try.answer)
	}
	fmt.Fprintf(&table, "\n%d attempts in all.\n", number)
	if number < 80 {
		t.Errorf("%d attempts are fewer than 80", number)
	}
	page := filepath.Join("..", "..", "docs", "security.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), tableBegins)
	_, tail, ends := strings.Cut(rest, tableEnds)
	if !ok || !ends {
		t.Fatalf("%s has no place for the table", page)
	}
	wanted := head + tableBegins + table.String() + tableEnds + tail
	if *write {
		if err := os.WriteFile(page, []byte(wanted), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if wanted != string(text) {
		t.Errorf("%s is stale; run go test ./test/admission -run TestPage -update", page)
	}
}
