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
	// Foreign writes to mirrored keys between the cut and the end of it.
	Foreign int
}

// Judge looks at all examinations, oldest first. A change of the owner, a foreign
// write and a failed examination each begin the wait anew.
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
	case last.Foreign > 0:
		return Unknown, fmt.Sprintf("somebody else has changed mirrored keys of the standby %d times since the cut", last.Foreign)
	case last.Owner == 0:
		return Unknown, "the sides are equal, and no mirror owns the standby: it falls behind"
	}
	for i := len(all) - 2; i >= 0; i-- {
		e := all[i]
		if e.Failed || !e.Clean || e.Foreign > 0 || e.Owner != last.Owner {
			break
		}
		if last.At.Sub(e.At) >= Apart {
			return Consistent, fmt.Sprintf("two clean cuts, %s apart", last.At.Sub(e.At).Round(time.Second))
		}
	}
	return Unknown, fmt.Sprintf("one clean cut; another is needed, at least %s later and under the same owner", Apart)
}
