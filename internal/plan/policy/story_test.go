package policy_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/story"
)

// TestStories plays testdata/*.txt: what an administrator and the users of members
// do, and what the leader and the members do about it.
//
// covers: LDR-RE-7, LDR-RE-9, MEM-NP-1, WK-14, WK-15, WK-20, WK-21, WK-23, WK-24, WK-25
func TestStories(t *testing.T) {
	story.Play(t, func(t *testing.T) story.World { return newWorld(t) })
}
