package fleet_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

func TestWithoutTicks(t *testing.T) {
	for name, tc := range map[string]struct {
		one, other string
		equal      bool
	}{
		"times":     {`"touch-ts":"2030-01-01T10:00:00Z"`, `"touch-ts":"2030-01-01T10:00:01+02:00"`, true},
		"revisions": {`"resourceVersion":"1"`, `"resourceVersion": "22"`, true},
		"sessions":  {`"published":"dn924ptgymbq-a"`, `"published":"dn924ptgzzzz-1b"`, true},
		"memories": {
			`"multicluster.lockstep.dev/leader-seen":"{\"revision\":7}"`,
			`"multicluster.lockstep.dev/leader-seen":"{\"revision\":9,\"touch\":\"2030-01-01T10:00:00Z\"}"`, true,
		},
		"a hold": {
			`"multicluster.lockstep.dev/leader-seen":"{\"revision\":7}"`,
			`"multicluster.lockstep.dev/leader-seen":"{\"revision\":7,\"holdSince\":\"2030-01-01T10:00:00Z\"}"`, false,
		},
		"ports":     {`"port":80`, `"port":81`, false},
		"addresses": {`"addresses":["10.0.0.1"]`, `"addresses":["10.0.0.2"]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if one, other := fleet.WithoutTicks(tc.one), fleet.WithoutTicks(tc.other); (one == other) != tc.equal {
				t.Errorf("%s and %s, want them equal: %v", one, other, tc.equal)
			}
		})
	}
}
