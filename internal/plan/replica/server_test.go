package replica_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// covers: M-2
func TestServersThatLoseChangesAreRefused(t *testing.T) {
	for version, want := range map[string]string{
		"3.3.27": "refused", "3.4.24": "refused", "3.4.25": "notice", "3.4.30": "notice", "3.4.31": "",
		"3.5.0": "refused", "3.5.7": "refused", "3.5.8": "notice", "3.5.12": "notice", "3.5.13": "", "3.6.0-rc.1": "", "3.7.3": "", "4.0.0": "", "": "", "kine": "",
	} {
		notice, err := replica.Server("primary", version)
		got := ""
		switch {
		case err != nil:
			got = "refused"
		case notice != "":
			got = "notice"
		}
		if got != want {
			t.Errorf("etcd %q: %q (%v), want %q", version, got, err, want)
		}
	}
}
