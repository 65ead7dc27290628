package replica_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// covers: D-11
func TestJudge(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	clean := func(after time.Duration, owner int64) replica.Examination {
		return replica.Examination{At: noon.Add(after), Owner: owner, Clean: true, Keys: 5, Head: 100, Rev: 100}
	}
	dirty, failed, foreign := clean(70*time.Second, 1), clean(70*time.Second, 1), clean(70*time.Second, 1)
	dirty.Clean, failed.Failed, foreign.Foreign = false, true, 1
	dirty.Why, failed.Why = "1 missed", "no answer"
	first, behind, caught, empty := clean(0, 1), clean(70*time.Second, 1), clean(131*time.Second, 1), clean(70*time.Second, 1)
	first.Rev, first.Head, behind.Rev, behind.Head, caught.Rev, caught.Head, empty.Keys = 100, 900, 500, 1500, 900, 1900, 0
	type all = []replica.Examination
	for name, c := range map[string]struct {
		all  all
		want replica.Judgement
	}{
		"nothing was looked at":                      {nil, replica.Unknown},
		"one clean cut is not enough":                {all{clean(0, 1)}, replica.Unknown},
		"two, a minute apart":                        {all{clean(0, 1), clean(61*time.Second, 1)}, replica.Consistent},
		"two that are too close":                     {all{clean(0, 1), clean(60*time.Second, 1)}, replica.Unknown},
		"close ones between do no harm":              {all{clean(0, 1), clean(30*time.Second, 1), clean(61*time.Second, 1)}, replica.Consistent},
		"the owner changed between them":             {all{clean(0, 1), clean(61*time.Second, 2)}, replica.Unknown},
		"nobody owns it":                             {all{clean(0, 0), clean(61*time.Second, 0)}, replica.Unknown},
		"a difference at last":                       {all{clean(0, 1), dirty}, replica.Inconsistent},
		"a difference between":                       {all{clean(0, 1), dirty, clean(71*time.Second, 1)}, replica.Unknown},
		"what cannot be read is no pass":             {all{clean(0, 1), failed}, replica.Unknown},
		"nor does one before it count":               {all{clean(0, 1), failed, clean(71*time.Second, 1)}, replica.Unknown},
		"a foreign write since the cut":              {all{clean(0, 1), foreign}, replica.Unknown},
		"a foreign write between begins a new wait":  {all{clean(0, 1), foreign, clean(71*time.Second, 1)}, replica.Unknown},
		"equal at each cut, and behind the first":    {all{first, behind}, replica.Unknown},
		"at last what the primary had at the first":  {all{first, behind, caught}, replica.Consistent},
		"not a key was compared":                     {all{clean(0, 1), empty}, replica.Unknown},
		"a difference that was healed, and two cuts": {all{dirty, clean(80*time.Second, 1), clean(141*time.Second, 1)}, replica.Consistent},
	} {
		t.Run(name, func(t *testing.T) {
			if got, why := replica.Judge(c.all); got != c.want || why == "" {
				t.Errorf("got %s (%s), want %s", got, why, c.want)
			}
		})
	}
	old := all{clean(0, 1), clean(61*time.Second, 1)}
	for age, want := range map[time.Duration]replica.Judgement{time.Minute: replica.Consistent, 7 * time.Minute: replica.Unknown} {
		if got, why := replica.JudgeAt(old, noon.Add(time.Minute+age), 2*time.Minute); got != want {
			t.Errorf("%s later it is %s (%s), want %s", age, got, why, want)
		}
	}
}
