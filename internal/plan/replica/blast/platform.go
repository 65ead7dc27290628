package blast

import (
	"cmp"
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// platform is what a side says of itself, in keys that are mostly its own.
type platform struct {
	idle    []Change // machines of the platform that are not running
	guarded bool
	led     *time.Time
}

// Places of what is looked for.
const (
	platformGroup = "platform.tkestack.io"
	running       = "Running"
)

var (
	// marker says to a standby's controllers that they are to keep still.
	marker = stored.Identity{Kind: "ConfigMap", Namespace: "kube-public", Name: "etcd-sync"}
	// leadership of the process with the garbage collector.
	leadership = stored.Identity{Group: "coordination.k8s.io", Kind: "Lease", Namespace: "kube-system", Name: "kube-controller-manager"}
)

func (p *platform) add(n *node, value []byte) {
	place := n.Identity
	place.UID = ""
	switch {
	case place == marker:
		p.guarded = true
	case place == leadership:
		var lease coordinationv1.Lease
		if lease.Unmarshal(stored.Raw(value)) == nil && lease.Spec.AcquireTime != nil {
			p.led = &lease.Spec.AcquireTime.Time
		}
	case n.Group == platformGroup && n.Kind == kindMachine:
		var o struct {
			Status struct {
				Phase string `json:"phase"`
			} `json:"status"`
		}
		if json.Unmarshal(value, &o) != nil || o.Status.Phase != running {
			p.idle = append(p.idle, Change{n.thing(), cmp.Or(o.Status.Phase, "without a phase")})
		}
	}
}
