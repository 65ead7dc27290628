package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// Keys of the mirror's own, outside of what Kubernetes reads.
const (
	CheckpointKey = "/lockstep/mirror/checkpoint"
	OwnerKey      = "/lockstep/mirror/owner"
)

// Standing reads checkpoint and owner of a target, both at one revision, from
// the quorum.
func (c *Client) Standing(ctx context.Context) (replica.Standing, error) {
	answer, err := c.etcd.Txn(ctx).Then(readStanding()...).Commit()
	if err != nil {
		return replica.Standing{}, fmt.Errorf("cannot read the checkpoint of the standby's etcd: %w", err)
	}
	return standing(answer.Responses)
}

func readStanding() []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(OwnerKey, clientv3.WithKeysOnly()), clientv3.OpGet(CheckpointKey)}
}

// standing reads the answer to readStanding.
func standing(responses []*etcdserverpb.ResponseOp) (replica.Standing, error) {
	var s replica.Standing
	for _, kv := range responses[0].GetResponseRange().GetKvs() {
		s.Owner = kv.CreateRevision
	}
	for _, kv := range responses[1].GetResponseRange().GetKvs() {
		checkpoint, err := replica.ParseCheckpoint(kv.Value)
		if err != nil {
			return s, err
		}
		s.Mod, s.Checkpoint = kv.ModRevision, checkpoint
	}
	return s, nil
}

// Outcome is what became of a transaction.
type Outcome struct {
	// Revision of the target that the transaction made; 0 when it is not known
	// to have happened.
	Revision int64
	// Prevented: a comparison did not hold, and Found is what was there instead.
	Prevented bool
	Found     replica.Standing
	// Rejected: it is beyond a limit of the target. Nothing has happened.
	Rejected replica.Rejection
	// Unknown: the answer was lost. It may have happened, or may still do so;
	// read the Standing and settle with that.
	Unknown error
	// Lasting: should it not have happened, another try is of no use before a person
	// has done what Unknown says.
	Lasting bool
}

// errUnowned is a fault of the caller. An owner of 0 would be compared with that of
// a target without an owner, such as one that was promoted, and be equal to it.
var errUnowned = errors.New("the standby's etcd is written only by an owner, and this transaction has none")

// Apply tries a transaction once. The error is for what certainly did not
// happen for another reason than those of the outcome, such as a right that lacks.
func (c *Client) Apply(ctx context.Context, t replica.Txn) (Outcome, error) {
	if t.If.Owner == 0 {
		return Outcome{}, errUnowned
	}
	answer, err := c.etcd.Txn(ctx).If(comparisons(t)...).Then(operations(t)...).Else(readStanding()...).Commit()
	switch {
	case err != nil:
		return failed(err)
	case answer.Succeeded:
		return Outcome{Revision: answer.Header.Revision}, nil
	}
	found, err := standing(answer.Responses)
	return Outcome{Prevented: true, Found: found}, err
}

func comparisons(t replica.Txn) []clientv3.Cmp {
	ifs := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(OwnerKey), "=", t.If.Owner),
		clientv3.Compare(clientv3.ModRevision(CheckpointKey), "=", t.If.Mod),
	}
	for _, op := range t.Ops {
		if op.IfMod != 0 {
			ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(op.Key), "=", op.IfMod))
		}
	}
	return ifs
}

func operations(t replica.Txn) []clientv3.Op {
	ops := make([]clientv3.Op, 0, len(t.Ops)+1)
	for _, op := range t.Ops {
		if op.Delete {
			ops = append(ops, clientv3.OpDelete(op.Key))
		} else {
			ops = append(ops, clientv3.OpPut(op.Key, string(op.Value)))
		}
	}
	return append(ops, clientv3.OpPut(CheckpointKey, string(t.Then.Encode())))
}

// failed sorts the error of a transaction by what it says about it.
func failed(err error) (Outcome, error) {
	var known rpctypes.EtcdError
	isKnown := errors.As(err, &known)
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps):
		return Outcome{Rejected: replica.TooManyOps}, nil
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return Outcome{Rejected: replica.TooLarge}, nil
	case isTooLarge(err):
		// The transport refuses what is half a MiB above etcd's own limit, before
		// etcd sees it.
		return Outcome{Rejected: replica.TooLarge}, nil
	case errors.Is(err, rpctypes.ErrNoSpace):
		// Etcd says so before it proposes anything, and also when the quota was passed
		// while the transaction was under way: then it has been applied all the same.
		return Outcome{Unknown: writeError(err), Lasting: true}, nil
	case isKnown && certain[known.Code()]:
		return Outcome{}, writeError(err)
	}
	return Outcome{Unknown: err}, nil
}

func writeError(err error) error {
	return fmt.Errorf("cannot write into the standby's etcd: %w%s", err, nextStep(err))
}

// nextStep is what to do about an error that a person has to mend.
func nextStep(err error) string {
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return "; its quota is used up: compact and defragment it, or raise --quota-backend-bytes, then disarm the alarm (etcdctl alarm disarm); the mirror goes on by itself"
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return "; grant its user read and write below the prefix of Kubernetes and below /lockstep/mirror/"
	}
	return ""
}

// certain are the codes with which etcd answers before it proposes anything.
// All others, such as Unavailable and a passed deadline, may hide a success.
var certain = map[codes.Code]bool{
	codes.InvalidArgument: true, codes.FailedPrecondition: true, codes.ResourceExhausted: true,
	codes.PermissionDenied: true, codes.Unauthenticated: true, codes.Unimplemented: true,
}

// Takes tells whether the server takes that many operations in one transaction,
// by one that only reads.
func (c *Client) Takes(ctx context.Context, n int) (bool, error) {
	gets := make([]clientv3.Op, n)
	for i := range gets {
		gets[i] = clientv3.OpGet(CheckpointKey, clientv3.WithCountOnly())
	}
	_, err := c.etcd.Txn(ctx).Then(gets...).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot learn how many operations etcd takes at once: %w", err)
	}
	return true, nil
}

// LearnOps finds the server's --max-txn-ops, up to what is of use.
func (c *Client) LearnOps(ctx context.Context) (int, error) {
	var probe replica.Probe
	for {
		n, done := probe.Next()
		if done {
			return probe.Works, nil
		}
		taken, err := c.Takes(ctx, n)
		if err != nil {
			return 0, err
		}
		probe = probe.Tell(n, taken)
	}
}
