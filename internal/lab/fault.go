package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/relay"
)

// Action names a fault, or its healing.
type Action string

// The actions. Target is a component, or a Pod as [namespace/]prefix of its name.
const (
	Kill     Action = "kill"     // SIGKILL to Target; its supervisor starts it again
	Pause    Action = "stop"     // SIGSTOP to Target: it keeps its sockets and answers nothing
	Continue Action = "continue" // SIGCONT to Target
	Restart  Action = "restart"  // orderly stop of a component, and a start

	SetLink Action = "set-link" // Condition of the link from cluster From

	FillDisk Action = "disk-full"  // etcd takes no more writes
	FreeDisk Action = "disk-freed" // it does again

	ExpireCertificate Action = "expire-certificate" // the API server's, an hour ago
	RenewCertificate  Action = "renew-certificate"

	Overload Action = "overload" // the API server answers ServiceAccounts with 429
	Relieve  Action = "relieve"  // it does not any more

	ExpireTokens Action = "expire-tokens" // all that the API server issued so far
	ShiftClock   Action = "shift-clock"   // of the Pods of Deployment Target, by Offset

	TakeSnapshot    Action = "snapshot" // of etcd into File
	RestoreSnapshot Action = "restore"  // of etcd from File, or to nothing when File is empty
)

// Fault is one thing to be done to a cluster, as it travels to its host.
type Fault struct {
	Action Action `json:"action"`
	// Target is whom Kill, Pause, Continue, Restart and ShiftClock mean.
	Target string `json:"target,omitempty"`
	// From is the cluster at the other end of the link that SetLink changes.
	From      string          `json:"from,omitempty"`
	Condition relay.Condition `json:"condition,omitzero"`
	// Offset is by how much ShiftClock puts clocks forward; below zero, back.
	Offset time.Duration `json:"offset,omitempty"`
	// File is the name of a snapshot of this cluster, or an absolute path.
	File string `json:"file,omitempty"`
	// BumpRevision is added to the revision of a restored etcd, so that watchers
	// notice that history went back. Zero rewinds in silence.
	BumpRevision uint64 `json:"bumpRevision,omitempty"`
}

// Inject does what a Fault says and returns when it holds.
func (h *Host) Inject(ctx context.Context, f Fault) error {
	if err := h.inject(ctx, f); err != nil {
		return fmt.Errorf("cannot %s on cluster %q: %w", f.describe(), h.site.Name, err)
	}
	h.log.Info("fault injected", "fault", f.describe())
	return nil
}

func (h *Host) inject(ctx context.Context, f Fault) error {
	switch f.Action {
	case Kill, Pause, Continue:
		return h.signal(f.Target, signals[f.Action])
	case SetLink:
		return h.setLink(f.From, f.Condition)
	}
	// The rest stops and starts components, which two must not do at once.
	h.fault.Lock()
	defer h.fault.Unlock()
	switch f.Action {
	case Restart:
		return h.restart(ctx, f.Target)
	case FillDisk:
		return h.fillDisk(ctx)
	case FreeDisk:
		return h.freeDisk(ctx)
	case ExpireCertificate:
		return h.expireCertificate(ctx, time.Now())
	case RenewCertificate:
		return h.renewCertificate(ctx, time.Now())
	case Overload:
		return h.overload(ctx)
	case Relieve:
		return h.relieve(ctx)
	case ExpireTokens:
		return h.expireTokens(ctx)
	case ShiftClock:
		return h.shiftClock(ctx, f.Target, f.Offset)
	case TakeSnapshot:
		return h.takeSnapshot(ctx, f.File)
	case RestoreSnapshot:
		return h.restore(ctx, f.File, f.BumpRevision)
	}
	return fmt.Errorf("the action is unknown")
}

// describe is the fault in words, as the second part of "cannot …".
func (f Fault) describe() string {
	switch {
	case f.Action == SetLink:
		return fmt.Sprintf("set the link from %q to %s", f.From, f.Condition)
	case f.Action == RestoreSnapshot && f.File == "":
		return "restore to nothing"
	case f.Action == RestoreSnapshot:
		return fmt.Sprintf("restore from %q", f.File)
	case f.Action == ShiftClock:
		return fmt.Sprintf("shift the clock of %s by %s", f.Target, f.Offset)
	case f.Target != "":
		return fmt.Sprintf("%s %s", f.Action, f.Target)
	}
	return string(f.Action)
}
