package replica

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// Server tells what the version of an etcd means for a mirror. It is refused when
// that cannot be trusted with what it says of a watch: asked while the watch catches
// up, it answers that all has been delivered (etcd PR 15237, in 3.4.25 and 3.5.8).
// The notice is for one that works, with a known fault: it is silent about a watch
// that never had an event (PR 17557, in 3.4.31 and 3.5.13), so a quiet one looks stalled.
// An empty version is not known, and not refused: etcd with authentication tells it to
// administrators alone.
func Server(side, version string) (notice string, err error) {
	v, known := parseVersion(version)
	switch {
	case !known:
		return "", nil
	case v.before(3, 4, 25) || v.minor >= 5 && v.before(3, 5, 8):
		return "", &refusal.Refusal{
			What: fmt.Sprintf("cannot mirror with the %s's etcd", side),
			Why:  fmt.Sprintf("it is version %s, whose watches may lose changes without a word while they catch up (etcd PR 15237)", version),
			Next: "upgrade it to 3.4.25, 3.5.8 or later", Rule: "M-2",
		}
	case v.before(3, 4, 31) || v.minor >= 5 && v.before(3, 5, 13):
		return fmt.Sprintf("etcd %s of the %s does not tell the progress of a watch that has had no event (etcd PR 17557): while it is quiet, the mirror begins again and again; 3.4.31, 3.5.13 and later do", version, side), nil
	}
	return "", nil
}

type version struct{ major, minor, patch int }

func parseVersion(text string) (version, bool) {
	core, _, _ := strings.Cut(strings.TrimPrefix(text, "v"), "-")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return version{}, false
	}
	var n [3]int
	for i, part := range parts {
		var err error
		if n[i], err = strconv.Atoi(part); err != nil {
			return version{}, false
		}
	}
	return version{n[0], n[1], n[2]}, true
}

// before tells whether it is of an older line, or of the same and older.
func (v version) before(major, minor, patch int) bool {
	if v.major != major || v.minor != minor {
		return v.major < major || v.major == major && v.minor < minor
	}
	return v.patch < patch
}
