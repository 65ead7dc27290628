package replica

import (
	"fmt"
	"time"
)

// Judgement is what can be said of a standby.
type Judgement string

// The judgements.
const (
	// Consistent: two clean cuts, far enough apart, under one owner.
	Consistent Judgement = "Consistent"
	// Inconsistent: the last cut found a difference.
	Inconsistent Judgement = "Inconsistent"
	// Unknown: not enough has been looked at. It is never a pass.
	Unknown Judgement = "Unknown"
)

// Apart is the least time between the two cuts.
const Apart = 61 * time.Second

// Examination is one comparison, and what was so around it.
type Examination struct {
	At    time.Time
	Owner int64 // who owned the standby: create revision of the owner key
	Clean bool
	// Why it is not clean, or could not be made (Failed).
	Why    string
	Failed bool
	// Head is the primary's revision when the comparison began, and Rev the one that
	// was compared: what is between them nobody has looked at.
	Head, Rev int64
	// Keys is how many mirrored keys the primary had.
	Keys int
	// Foreign writes to mirrored keys between the cut and the end of it.
	Foreign int
}

// JudgeAt is Judge at a moment: what was found longer ago than three times the
// interval of the comparisons, and three minutes, is no evidence any more.
func JudgeAt(all []Examination, now time.Time, every time.Duration) (Judgement, string) {
	if n := len(all); n > 0 {
		if age := now.Sub(all[n-1].At); age > 3*max(every, time.Minute) {
			return Unknown, fmt.Sprintf("the last comparison that came to an end is %s old", age.Round(time.Second))
		}
	}
	return Judge(all)
}

// Judge looks at all examinations, oldest first. A change of the owner, a foreign
// write and a failed examination each begin the wait anew. The last cut must have what
// the primary had at the first: a standby that lags is equal at each cut as well.
func Judge(all []Examination) (Judgement, string) {
	if len(all) == 0 {
		return Unknown, "nothing has been compared yet"
	}
	last := all[len(all)-1]
	switch {
	case last.Failed:
		return Unknown, last.Why
	case !last.Clean:
		return Inconsistent, last.Why
	case last.Keys == 0:
		return Unknown, "the primary has no mirrored key, so that nothing has been compared; check its endpoints and the prefix"
	case last.Foreign > 0:
		return Unknown, fmt.Sprintf("somebody else has changed mirrored keys of the standby %d times since the cut", last.Foreign)
	case last.Owner == 0:
		return Unknown, "the sides are equal, and no mirror owns the standby: it falls behind"
	}
	behind := int64(0)
	for i := len(all) - 2; i >= 0; i-- {
		e := all[i]
		if e.Failed || !e.Clean || e.Foreign > 0 || e.Owner != last.Owner {
			break
		}
		if last.At.Sub(e.At) < Apart {
			continue
		}
		if last.Rev >= e.Head {
			return Consistent, fmt.Sprintf("two clean cuts, %s apart", last.At.Sub(e.At).Round(time.Second))
		}
		behind = max(behind, e.Head-last.Rev)
	}
	if behind > 0 {
		return Unknown, fmt.Sprintf("both cuts were clean, and the standby is behind: it lacks %d revisions that the primary had at the first one", behind)
	}
	return Unknown, fmt.Sprintf("one clean cut; another is needed, at least %s later and under the same owner", Apart)
}
