package replica_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

func at(side replica.Side, epoch int64) replica.RoleAt {
	if side == "" {
		return replica.RoleAt{}
	}
	return replica.RoleAt{Role: replica.Role{Side: side, Epoch: epoch}, Mod: 7}
}

// covers: D-02
func TestAdmit(t *testing.T) {
	for name, c := range map[string]struct {
		source, target replica.RoleAt
		sameID         bool
		want           string // part of the refusal
	}{
		"a pair that never was one":                     {at("", 0), at("", 0), false, ""},
		"the mirror of yesterday":                       {at("", 0), at(replica.Standby, 0), false, ""},
		"a marked primary":                              {at(replica.Primary, 3), at(replica.Standby, 3), false, ""},
		"a former primary that became a standby":        {at(replica.Primary, 4), at(replica.Standby, 3), false, ""},
		"one etcd twice":                                {at("", 0), at("", 0), true, "same etcd cluster"},
		"the other direction: the source is a standby":  {at(replica.Standby, 0), at("", 0), false, "the source is marked as standby"},
		"a promoted standby is not overwritten":         {at("", 0), at(replica.Primary, 1), false, "the target is marked as primary"},
		"nor a primary that was fenced":                 {at(replica.Primary, 1), at(replica.Fenced, 1), false, "the target is marked as fenced"},
		"nothing is copied from a fenced one":           {at(replica.Fenced, 1), at(replica.Standby, 0), false, "the source is marked as fenced"},
		"the target has seen a promotion, source not":   {at(replica.Primary, 1), at(replica.Standby, 2), false, "promotion 2"},
		"a source without a role is of promotion zero":  {at("", 0), at(replica.Standby, 1), false, "promotion 1"},
		"primary and primary: two that were never one":  {at(replica.Primary, 0), at(replica.Primary, 0), false, "the target is marked as primary"},
		"standby and standby: a pair without a primary": {at(replica.Standby, 0), at(replica.Standby, 0), false, "the source is marked as standby"},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := replica.Peer{ID: "s", Role: c.source}, replica.Peer{ID: "t", Role: c.target}
			if c.sameID {
				target.ID = source.ID
			}
			role, err := replica.Admit(source, target)
			switch {
			case c.want == "" && (err != nil || role != replica.Role{Side: replica.Standby, Epoch: c.source.Epoch}):
				t.Errorf("got %+v, %v", role, err)
			case c.want != "" && (refusal.In(err) == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %+v, %v; want a refusal with %q", role, err, c.want)
			}
		})
	}
}

func TestParseRole(t *testing.T) {
	want := replica.Role{Side: replica.Fenced, Epoch: 2}
	if got, err := replica.ParseRole(want.Encode()); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "x", `{"role":"king"}`} {
		if _, err := replica.ParseRole([]byte(bad)); refusal.In(err) == nil {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}
