package replica

import (
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// Foreign are the changes of one revision of the target that somebody else made
// to mirrored keys: a garbage collector, a controller, a person. The mirror
// writes the checkpoint in each of its transactions, so a revision without that
// key is not the mirror's.
func Foreign(rules selection.Rules, checkpoint string, revision Revision) (foreign []Event) {
	for _, event := range revision.Events {
		if event.Key == checkpoint {
			return nil
		}
		value := event.Value
		if event.Deleted {
			value = event.Prev
		}
		if Mirrored(rules, event.Key, value) {
			foreign = append(foreign, event)
		}
	}
	return foreign
}
