package replica

import "github.com/lockstep-dev/lockstep/internal/plan/refusal"

// Touch writes the checkpoint as it is. What others did to the target before is then
// before the cut of the next comparison, and what they do later is after the
// transaction, where a watch hears it: nothing is between the two.
func Touch(s Standing) Txn { return Txn{If: s.Fence, Then: s.Checkpoint} }

// Heal writes again what somebody else took from a steady target or changed in
// it, such as a garbage collector that did not find an owner. The keys are
// mirrored, with the source's values at the checkpoint's revision, owners first;
// as many are written as the limits take, from the front.
//
// The checkpoint says the same afterwards: the keys were meant to be so. Since
// the transaction depends on it, nothing newer is overwritten. Surplus is not
// healed: a person decides about each key.
func Heal(s Standing, keys []KV, limits Limits) (Txn, int, error) {
	if s.Mod == 0 || s.Checkpoint.Mode != Steady {
		return Txn{}, 0, &refusal.Refusal{
			What: "cannot heal the standby's etcd",
			Why:  "it is not the primary at any one revision",
			Next: "let the copy end first; it writes what is missing as well",
			Rule: "M-2",
		}
	}
	put := func(kv KV) Op { return Op{Key: kv.Key, Value: kv.Value} }
	taken := fill(keys, limits, put, 0)
	txn := Txn{If: s.Fence, Then: s.Checkpoint}
	for _, kv := range taken {
		txn.Ops = append(txn.Ops, put(kv))
	}
	return txn, len(taken), nil
}
