package certificate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/certificate"
)

var (
	noon  = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	names = []string{"webhook.area.svc"}
)

const day = 24 * time.Hour

func pair(end time.Duration, names ...string) *certificate.Pair {
	return &certificate.Pair{Made: noon.Add(end - 90*day), End: noon.Add(end), Names: names}
}

// covers: WK-26
func TestDecide(t *testing.T) {
	good := "webhook.area.svc"
	for name, tc := range map[string]struct {
		reason string
		seen   certificate.Observed
		step   certificate.Step
		again  time.Duration
	}{
		"nothing yet":        {"somebody has to begin", certificate.Observed{}, certificate.Issue, 0},
		"a fresh pair":       {"60 of 90 days nothing is to be done", certificate.Observed{Current: pair(90*day, good)}, certificate.Keep, 60 * day},
		"just not due":       {"a second is left", certificate.Observed{Current: pair(30*day+time.Second, good)}, certificate.Keep, time.Second},
		"due":                {"a third of its life is left", certificate.Observed{Current: pair(30*day, good)}, certificate.Stage, 0},
		"ended":              {"the whole ClusterSet would be frozen", certificate.Observed{Current: pair(0, good)}, certificate.Issue, 0},
		"ended, another is":  {"whether published or not, the old one is of no use", certificate.Observed{Current: pair(-day, good), Next: pair(80*day, good)}, certificate.Promote, 0},
		"another name":       {"the API server asks under it", certificate.Observed{Current: pair(90*day, "other")}, certificate.Stage, 0},
		"staged, not told":   {"who serves it now is not trusted", certificate.Observed{Current: pair(30*day, good), Next: pair(90*day, good)}, certificate.Keep, 10 * time.Minute},
		"told a moment ago":  {"another API server may not have heard", certificate.Observed{Current: pair(30*day, good), Next: pair(90*day, good), Published: noon.Add(-9 * time.Minute)}, certificate.Keep, time.Minute},
		"told long ago":      {"all have heard", certificate.Observed{Current: pair(30*day, good), Next: pair(90*day, good), Published: noon.Add(-10 * time.Minute)}, certificate.Promote, 0},
		"the next has ended": {"staged, and then nobody ran for months", certificate.Observed{Current: pair(day, good), Next: pair(0, good)}, certificate.Stage, 0},
		"an old CA":          {"until its end it is trusted", certificate.Observed{Current: pair(90*day, good), Ends: []time.Time{noon.Add(time.Hour), noon.Add(90 * day)}}, certificate.Keep, time.Hour},
		"an ended CA":        {"nobody can serve what it signed", certificate.Observed{Current: pair(90*day, good), Ends: []time.Time{noon, noon.Add(90 * day)}}, certificate.Prune, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.seen.Now, tc.seen.Names = noon, names
			got := certificate.Decide(tc.seen, certificate.Times{})
			if got.Step != tc.step || got.LookAgainIn != tc.again {
				t.Errorf("%s after %s (%s), want %s after %s: %s", got.Step, got.LookAgainIn, got.Why, tc.step, tc.again, tc.reason)
			}
			if (got.Why == "") != (got.Step == certificate.Keep) {
				t.Errorf("%s because %q", got.Step, got.Why)
			}
		})
	}
}

// world plays the Secret, the configurations, and replicas that hear late: each
// serves any pair that was current while it was still good.
type world struct {
	now             time.Time
	current, next   *certificate.Pair
	bundle, trusted []*certificate.Pair // each with a CA of its own
	published       time.Time
}

func (w *world) step(t certificate.Times) certificate.Decision {
	var ends []time.Time
	for _, p := range w.bundle {
		ends = append(ends, p.End)
	}
	d := certificate.Decide(certificate.Observed{Now: w.now, Names: names, Current: w.current, Next: w.next, Published: w.published, Ends: ends}, t)
	fresh := &certificate.Pair{Made: w.now, End: t.End(w.now), Names: names}
	switch d.Step {
	case certificate.Issue:
		w.current, w.next, w.bundle = fresh, nil, []*certificate.Pair{fresh}
	case certificate.Stage:
		w.next, w.published, w.bundle = fresh, time.Time{}, append(slices.Clone(w.bundle), fresh)
	case certificate.Promote:
		w.current, w.next = w.next, nil
	case certificate.Prune:
		w.bundle = slices.DeleteFunc(slices.Clone(w.bundle), func(p *certificate.Pair) bool { return !w.now.Before(p.End) })
	}
	return d
}

// Whatever good pair any replica serves is trusted by the configurations, as long
// as somebody looks before pairs end; and there is always a good one.
//
// covers: WK-26
func TestWhatIsServedIsTrusted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := certificate.Times{Life: time.Duration(rapid.IntRange(60, 10_000).Draw(t, "life")) * time.Second}
		w := &world{now: noon}
		var served []*certificate.Pair
		for range rapid.IntRange(20, 300).Draw(t, "looks") {
			d := w.step(times)
			if d.Step == certificate.Issue && len(served) > 0 {
				t.Fatalf("a pair was issued from nothing: %s", d.Why)
			}
			if rapid.IntRange(0, 3).Draw(t, "publish") > 0 || len(w.trusted) == 0 {
				w.trusted = w.bundle
				if w.next != nil && w.published.IsZero() {
					w.published = w.now
				}
			}
			if !slices.Contains(served, w.current) {
				served = append(served, w.current)
			}
			if !w.now.Before(w.current.End) {
				t.Fatal("what is current has ended")
			}
			for _, p := range served {
				if w.now.Before(p.End) && !slices.Contains(w.trusted, p) {
					t.Fatalf("a replica serves a pair made at %s that is not trusted at %s", p.Made, w.now)
				}
			}
			w.now = w.now.Add(times.Life / time.Duration(rapid.IntRange(25, 400).Draw(t, "pace")))
		}
	})
}

// Without anybody changing anything, looking when told to is enough.
func TestLookAgainIsSoonEnough(t *testing.T) {
	times, w := certificate.Times{}, &world{now: noon}
	var story []string
	for len(story) < 9 {
		d := w.step(times)
		w.trusted = w.bundle
		if w.next != nil && w.published.IsZero() {
			w.published = w.now
		}
		if d.Step == certificate.Keep && d.LookAgainIn <= 0 {
			t.Fatalf("keep without a time to look again at %s", w.now)
		}
		if d.Step != certificate.Keep {
			story = append(story, fmt.Sprintf("%s %.0f", d.Step, w.now.Sub(noon).Hours()/24))
		}
		w.now = w.now.Add(d.LookAgainIn)
	}
	want := []string{"issue 0", "stage 60", "promote 60", "prune 90", "stage 120", "promote 120", "prune 150", "stage 180", "promote 180"}
	if !slices.Equal(story, want) {
		t.Errorf("days of the story: %q, want %q", story, want)
	}
}
