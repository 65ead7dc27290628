package replica

import (
	"encoding/json"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// Side is what an etcd is to its pair.
type Side string

// The sides. An etcd without a role has never been part of a pair.
const (
	Primary Side = "primary"
	Standby Side = "standby"
	// Fenced was primary until its standby was promoted.
	Fenced Side = "fenced"
)

// Role lies in the etcd of each side, beside the checkpoint. It is what keeps a
// mirror in the other direction from overwriting what it was copied from.
type Role struct {
	Side Side `json:"role"`
	// Epoch counts promotions of the pair.
	Epoch int64 `json:"epoch"`
}

// RoleAt is a role as it was read.
type RoleAt struct {
	Role
	Mod int64 // mod revision of the role key; 0: there is none
}

// Encode is the value of the role key.
func (r Role) Encode() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		return nil // not possible: a string and a number
	}
	return text
}

// ParseRole reads the value of the role key.
func ParseRole(value []byte) (Role, error) {
	var r Role
	err := json.Unmarshal(value, &r)
	if err == nil && r.Side != Primary && r.Side != Standby && r.Side != Fenced {
		err = fmt.Errorf("unknown role %q", r.Side)
	}
	if err != nil {
		return Role{}, &refusal.Refusal{
			What: "cannot tell primary from standby", Why: "the role in etcd cannot be read: " + err.Error(),
			Next: "use the version of the program that wrote it", Rule: "D-02", Cause: err,
		}
	}
	return r, nil
}

// Peer is one side of a mirror as it is found.
type Peer struct {
	ID   string // cluster ID
	Role RoleAt
}

// Admit tells with which role the target of a mirror is marked, in the same
// transaction in which it is taken. It is refused when the two may not be
// mirrored in this direction: the target is lost otherwise.
func Admit(source, target Peer) (Role, error) {
	from, to := source.Role.Role, target.Role.Role
	switch {
	case source.ID == target.ID:
		return Role{}, refuse(fmt.Sprintf("both are the same etcd cluster, %s", source.ID), "check the endpoints of primary and standby")
	case to.Side == Primary || to.Side == Fenced:
		return Role{}, refuse(fmt.Sprintf("the target is marked as %s (promotion %d), and a mirror would overwrite it", to.Side, to.Epoch),
			"check which side is primary; one that is to be a standby again is told so by a person, by deleting its role key")
	case from.Side == Standby || from.Side == Fenced:
		return Role{}, refuse(fmt.Sprintf("the source is marked as %s (promotion %d)", from.Side, from.Epoch),
			"check which side is primary, and the direction of the mirror")
	case to.Epoch > from.Epoch:
		return Role{}, refuse(fmt.Sprintf("the target has seen promotion %d, and the source only %d", to.Epoch, from.Epoch), "check which side is primary")
	}
	return Role{Side: Standby, Epoch: from.Epoch}, nil
}
