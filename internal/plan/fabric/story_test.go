package fabric_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/story"
)

// TestStories plays testdata/*.txt: what happens in a member, and what is done about it, by all.
//
// covers: MEM-GW-2, MEM-GW-3, MEM-CI-2, WK-9, WK-10, WK-11, WK-51, WK-56
func TestStories(t *testing.T) {
	story.Play(t, func(t *testing.T) story.World { return newWorld(t) })
}
