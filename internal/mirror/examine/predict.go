package examine

import (
	"context"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/blast"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// Predict is Examine, and tells in the same pass what the controllers of each side
// would do to its objects. Beside the pages, names are kept of what has an owner, is
// being deleted or belongs to Cluster API, and some 20 bytes of all else.
func Predict(ctx context.Context, source, target *etcd.Client, rules selection.Rules, most int) (report Report, standby, primary blast.Prediction, err error) {
	var here, there *blast.World
	report, err = persist(ctx, source, target, rules, most, func(cut replica.Cut) (replica.Look, error) {
		// Anew for each try: another cut is another world.
		if here, err = world(ctx, target, rules, cut.Mod); err != nil {
			return nil, err
		}
		if there, err = world(ctx, source, rules, cut.Rev); err != nil {
			return nil, err
		}
		return func(key string, mirrored bool, source, target []byte) {
			if target != nil {
				here.Add(blast.Object{Key: key, Value: target, Mirrored: mirrored, Other: source})
			}
			if source != nil {
				there.Add(blast.Object{Key: key, Value: source, Mirrored: mirrored, Other: target})
			}
		}, nil
	})
	if err != nil {
		return Report{}, blast.Prediction{}, blast.Prediction{}, err
	}
	return report, here.Predict(), there.Predict(), nil
}

func world(ctx context.Context, side *etcd.Client, rules selection.Rules, rev int64) (*blast.World, error) {
	var namespaces [][]byte
	for kv, err := range side.Read(ctx, etcd.Range{Prefix: rules.Root() + "namespaces/", Rev: rev}) {
		if err != nil {
			return nil, err
		}
		namespaces = append(namespaces, kv.Value)
	}
	return blast.NewWorld(namespaces), nil
}
