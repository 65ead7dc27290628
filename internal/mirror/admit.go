package mirror

import (
	"bytes"
	"context"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// peers are both sides, and what the target becomes.
type peers struct {
	from, to replica.Peer
	role     replica.Role
}

// admit learns who both sides are, and whether the one may be mirrored into the
// other. Nothing is written.
func (s *session) admit(ctx context.Context) (p peers, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if p.from, err = peer(ctx, s.source); err != nil {
		return p, fmt.Errorf("primary: %w", err)
	}
	if p.to, err = peer(ctx, s.target); err != nil {
		return p, fmt.Errorf("standby: %w", err)
	}
	if p.role, err = replica.Admit(p.from, p.to); err != nil {
		return p, err
	}
	for name, client := range map[string]*etcd.Client{"primary": s.source, "standby": s.target} {
		notice, err := replica.Server(name, client.Status(ctx).Version)
		if err != nil {
			return p, err
		}
		if notice != "" {
			s.log.Info("An etcd has a known fault", "reason", notice)
		}
	}
	return p, s.elected(ctx)
}

// count looks at the keys of both sides before a standby is taken for the first time:
// roles are marked then, and those of endpoints that are swapped would be wrong.
func (s *session) count(ctx context.Context, to replica.Peer) error {
	standing, err := s.target.Standing(ctx)
	if err != nil {
		return err
	}
	if to.Role.Mod != 0 && standing.Mod != 0 {
		return nil
	}
	census, err := replica.Count(s.rules, s.keysAt(ctx, 0), s.keysHere(ctx))
	if err != nil {
		return err
	}
	return census.Admit(s.rules.Root(), true, s.Config.FirstCopyMayDelete)
}

// elected looks for the Lease of this replica in both etcds.
func (s *session) elected(ctx context.Context) error {
	if s.Cluster == nil {
		return nil
	}
	key := s.rules.Root() + "leases/" + s.namespace() + "/" + LeaseName
	holds := func(client *etcd.Client) (bool, error) {
		kvs, err := client.Values(ctx, 0, []string{key})
		for _, kv := range kvs {
			// One that is encrypted says nothing but that it is there; the primary may have
			// one from when it was the standby.
			encrypted := bytes.HasPrefix(kv.Value, []byte("k8s:enc:"))
			return encrypted && client == s.target || bytes.Contains(kv.Value, []byte(s.Holder)), err
		}
		return false, err
	}
	here, err := holds(s.target)
	if err != nil {
		return fmt.Errorf("standby: %w", err)
	}
	there, err := holds(s.source)
	if err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	return replica.Elected(key, here, there)
}

func peer(ctx context.Context, client *etcd.Client) (replica.Peer, error) {
	head, err := client.Head(ctx)
	if err != nil {
		return replica.Peer{}, err
	}
	role, err := client.Role(ctx)
	return replica.Peer{ID: head.ID, Role: role}, err
}
