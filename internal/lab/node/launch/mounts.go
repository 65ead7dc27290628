package launch

import (
	"cmp"
	"slices"
	"strings"
)

// Mount says that the container path At is the local path Dir.
type Mount struct{ At, Dir string }

// Mounts translate container paths. A process without a mount namespace cannot
// see a volume at its mountPath, so the paths it is given are changed instead.
type Mounts []Mount

// NewMounts orders the mounts so that the innermost wins: with /etc and
// /etc/tls mounted, /etc/tls/key belongs to the second.
func NewMounts(mounts ...Mount) Mounts {
	sorted := slices.Clone(mounts)
	slices.SortStableFunc(sorted, func(a, b Mount) int { return cmp.Compare(len(b.At), len(a.At)) })
	for i := range sorted {
		sorted[i].At = strings.TrimRight(sorted[i].At, "/")
	}
	return sorted
}

// Rewrite translates every mounted path in s, wherever it stands: alone, after
// "--config=", in "file:///…", or in a list joined by colons or commas.
// It goes through s once, so that a local path which happens to contain a
// mountPath is not translated again.
func (m Mounts) Rewrite(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		if mount, ok := m.at(s, i); ok {
			out.WriteString(mount.Dir)
			i += len(mount.At)
			continue
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}

// at finds the mount whose path begins at s[i] and is not part of a longer
// name: /etc/tls is in "--dir=/etc/tls/key", but not in "/srv/etc/tls" nor in
// "/etc/tls-old".
func (m Mounts) at(s string, i int) (Mount, bool) {
	if s[i] != '/' || i > 0 && inName(s[i-1]) {
		return Mount{}, false
	}
	for _, mount := range m {
		end := i + len(mount.At)
		if mount.At != "" && strings.HasPrefix(s[i:], mount.At) && (end == len(s) || !inName(s[end])) {
			return mount, true
		}
	}
	return Mount{}, false
}

func inName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '.' || c == '-' || c == '_'
}
