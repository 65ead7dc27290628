package podstate_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/story"
)

// TestStories plays testdata/*.txt: what happens to a Pod, and what is decided then.
func TestStories(t *testing.T) {
	story.Play(t, func(t *testing.T) story.World { return &world{t: t} })
}
