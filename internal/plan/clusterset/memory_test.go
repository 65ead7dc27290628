package clusterset_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// memory of the ClusterSet with that UID, optionally with a hold that began
// some time before noon.
func memory(uid types.UID, revision uint64, hold ...time.Duration) v1alpha1.LeaderMemory {
	m := v1alpha1.LeaderMemory{ClusterSetUID: uid, Revision: revision}
	for _, ago := range hold {
		m.HoldSince = &metav1.Time{Time: noon.Add(-ago)}
	}
	return m
}

func contact(revision uint64, change ...func(*clusterset.Contact)) clusterset.Contact {
	c := clusterset.Contact{ClusterSetUID: "set-uid", Revision: revision}
	for _, f := range change {
		f(&c)
	}
	return c
}

// A common area that lost writes is one that went back, was made anew, or shows
// an announce its owner did not write.
func TestHoldBeginsWhenTheAreaLostWrites(t *testing.T) {
	silent := func(c *clusterset.Contact) { c.ClusterSetUID = "" }
	foreign := func(c *clusterset.Contact) { c.Foreign = true }
	for name, tc := range map[string]struct {
		before v1alpha1.LeaderMemory
		now    clusterset.Contact
		want   v1alpha1.LeaderMemory
		lost   bool
	}{
		"the first contact is remembered":                    {v1alpha1.LeaderMemory{}, contact(50), memory("set-uid", 50), false},
		"before the leader has answered":                     {v1alpha1.LeaderMemory{}, contact(50, silent), memory("", 50), false},
		"a leader that says nothing is not another":          {memory("set-uid", 50), contact(60, silent), memory("set-uid", 50), false},
		"a quiet area is not stored again":                   {memory("set-uid", 50), contact(1049), memory("set-uid", 50), false},
		"one that moved on is":                               {memory("set-uid", 50), contact(1050), memory("set-uid", 1050), false},
		"it stands still":                                    {memory("set-uid", 50), contact(50), memory("set-uid", 50), false},
		"it went back":                                       {memory("set-uid", 50), contact(49), memory("set-uid", 49, 0), true},
		"another ClusterSet took its place":                  {memory("other-uid", 50), contact(60), memory("set-uid", 60, 0), true},
		"the announce is an older one":                       {memory("set-uid", 50), contact(60, foreign), memory("set-uid", 60, 0), true},
		"a hold goes on":                                     {memory("set-uid", 50, time.Hour), contact(60), memory("set-uid", 50, time.Hour), false},
		"and keeps its beginning when more writes were lost": {memory("set-uid", 50, time.Hour), contact(40), memory("set-uid", 40, time.Hour), true},
	} {
		t.Run(name, func(t *testing.T) {
			got, lost := clusterset.Remember(tc.before, tc.now, noon)
			if diff := cmp.Diff(tc.want, got); diff != "" || lost != tc.lost {
				t.Errorf("lost %v, want %v; memory:\n%s", lost, tc.lost, diff)
			}
		})
	}
}

// A process that was restarted has only the stored touch-ts to go by: an
// announce that is older, or gone, is from a backup.
func TestOlderAnnounceTellsOfABackup(t *testing.T) {
	const stored, later, older = "2030-01-02T12:00:00Z", "2030-01-02T13:02:00+01:00", "2030-01-02T12:59:59+01:00"
	remembered := memory("set-uid", 50)
	remembered.Touch = stored
	for name, tc := range map[string]struct {
		touch  string
		change func(*clusterset.Contact)
		before v1alpha1.LeaderMemory
		lost   bool
		keeps  string
	}{
		"a younger one is stored":                    {later, nil, remembered, false, later},
		"not at every heartbeat":                     {"2030-01-02T12:00:59Z", nil, remembered, false, stored},
		"an older one is lost writes":                {older, nil, remembered, true, older},
		"so is none at all":                          {"", nil, remembered, true, ""},
		"and one that is no time":                    {"yesterday", nil, remembered, true, "yesterday"},
		"nothing is known before the first":          {older, nil, memory("set-uid", 50), false, older},
		"upstream's leader deletes silent announces": {"", nil, v1alpha1.LeaderMemory{Revision: 50, Touch: stored}, false, stored},
		"a clock that was set back, seen by the process that wrote it": {
			older, func(c *clusterset.Contact) { c.AsLeft = true }, remembered, false, stored,
		},
		"set back by more, it is stored": {
			"2030-01-02T11:00:00Z", func(c *clusterset.Contact) { c.AsLeft = true }, remembered, false, "2030-01-02T11:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := contact(50)
			now.Touch, now.StoreAfter = tc.touch, time.Minute
			if tc.change != nil {
				tc.change(&now)
			}
			got, lost := clusterset.Remember(tc.before, now, noon)
			if lost != tc.lost || (got.HoldSince != nil) != tc.lost || got.Touch != tc.keeps {
				t.Errorf("lost %v, memory %+v", lost, got)
			}
		})
	}
}

// Nobody knows what a damaged memory said; a hold is what it may have said.
func TestDamagedMemoryHolds(t *testing.T) {
	recall := func(text string) v1alpha1.LeaderMemory {
		return clusterset.Recall(map[string]string{v1alpha1.AnnotationLeaderSeen: text}, noon)
	}
	for _, text := range []string{"{", "[]", `{"revision":"x"}`} {
		if got := recall(text); got.HoldSince == nil || got.Revision != 0 || got.ClusterSetUID != "" {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := recall(""); got != (v1alpha1.LeaderMemory{}) {
		t.Errorf("a first process has no memory: %+v", got)
	}
	if got := recall(clusterset.WriteMemory(memory("set-uid", 50))); got != memory("set-uid", 50) {
		t.Errorf("a sound one: %+v", got)
	}
}

func TestMemorySurvivesAsAnnotation(t *testing.T) {
	for name, m := range map[string]v1alpha1.LeaderMemory{"empty": {}, "plain": memory("set-uid", 50), "held": memory("set-uid", 50, time.Hour)} {
		got := clusterset.ReadMemory(map[string]string{v1alpha1.AnnotationLeaderSeen: clusterset.WriteMemory(m)})
		if !got.HoldSince.Equal(m.HoldSince) || got.Revision != m.Revision || got.ClusterSetUID != m.ClusterSetUID {
			t.Errorf("%s: got %+v, want %+v", name, got, m)
		}
	}
	for name, text := range map[string]string{"absent": "", "damaged": "{", "of another kind": "[]"} {
		if got := clusterset.ReadMemory(map[string]string{v1alpha1.AnnotationLeaderSeen: text}); got != (v1alpha1.LeaderMemory{}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestAcceptedNamesTheLeader(t *testing.T) {
	accept := func(uid string) map[string]string { return map[string]string{v1alpha1.AnnotationAcceptLeader: uid} }
	for name, tc := range map[string]struct {
		annotations map[string]string
		memory      v1alpha1.LeaderMemory
		want        bool
	}{
		"this one":                       {accept("set-uid"), memory("set-uid", 1, time.Hour), true},
		"a former one":                   {accept("set-uid"), memory("other-uid", 1, time.Hour), false},
		"nobody accepted":                {nil, memory("set-uid", 1, time.Hour), false},
		"there is no hold":               {accept("set-uid"), memory("set-uid", 1), false},
		"an empty word accepts nothing":  {accept(""), v1alpha1.LeaderMemory{}, false},
		"upstream's leader has no name":  {accept("2030-01-02T11:00:00Z"), memory("", 1, time.Hour), true},
		"and was accepted once before":   {accept("2030-01-02T11:00:00Z"), memory("", 1, time.Minute), false},
		"a time does not stand for ours": {accept("2030-01-02T11:00:00Z"), memory("set-uid", 1, time.Hour), false},
	} {
		if got := clusterset.Accepted(tc.annotations, tc.memory); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReleasedAreThoseSeenAliveAndPublished(t *testing.T) {
	published := annotated(v1alpha1.AnnotationPublished, "session")
	first := announce("east", 0)
	before := map[string]clusterset.Sighting{"east": {Touch: first.Annotations[v1alpha1.AnnotationTouch]}}
	for name, tc := range map[string]struct {
		now  v1alpha1.MemberClusterAnnounce
		want bool
	}{
		"touched since, and published":             {announce("east", 10, published), true},
		"as in the backup":                         {announce("east", 0, published), false},
		"alive, but still comparing":               {announce("east", 10), false},
		"our leader has merged it":                 {announce("east", 10, published, annotated(v1alpha1.AnnotationLeader, stampFor("session"))), true},
		"our leader is still merging":              {announce("east", 10, published, annotated(v1alpha1.AnnotationLeader, stampFor("former"))), false},
		"our leader's word is damaged":             {announce("east", 10, published, annotated(v1alpha1.AnnotationLeader, "{")), false},
		"on its way out":                           {announce("east", 10, published, deleted), false},
		"one that was not there at first is alive": {announce("west", 0, published), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clusterset.Released(before, []v1alpha1.MemberClusterAnnounce{tc.now}); got[tc.now.ClusterID] != tc.want {
				t.Errorf("released %v", got)
			}
		})
	}
}

// stampFor is our leader's answer that says which session is merged.
func stampFor(session string) string {
	return `{"clusterSetUID":"set-uid","exchange":"Slices","merged":"` + session + `"}`
}
