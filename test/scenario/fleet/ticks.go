package fleet

import (
	"regexp"
	"strings"
)

// ticks is what differs between two equal writes, or between two equal stories.
var ticks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\b[0-9a-z]{12}-[0-9a-z]{1,4}\b`), "SESSION"},
	{regexp.MustCompile(`"resourceVersion": ?"\d+"`), `"resourceVersion":""`},
	{regexp.MustCompile(`\\"revision\\":\d+`), `\"revision\":0`},
}

// memory is what a member remembers of its leader, which it stores once a minute.
var memory = regexp.MustCompile(`"multicluster\.lockstep\.dev/leader-seen": ?"\{(\\.|[^"\\])*"`)

// WithoutTicks is the JSON of an object without its times, UIDs, revisions and
// names of sessions. Two writes that are equal without them say the same; a clock
// has brought the second.
func WithoutTicks(text string) string {
	text = memory.ReplaceAllStringFunc(text, func(stored string) string {
		if strings.Contains(stored, "holdSince") {
			return stored // that one is no clock's
		}
		return `"multicluster.lockstep.dev/leader-seen":"MEMORY"`
	})
	for _, tick := range ticks {
		text = tick.pattern.ReplaceAllString(text, tick.with)
	}
	return text
}
