package mirror

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/mirror/monitor"
	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

const inspectLong = `Show what both sides hold under a key of etcd: which class it has and why,
whether the values are equal, and of each side the UID, owners and deletion.
Values are never printed. While the mirror is at work the two are read at the
revisions that should be equal.

  lockstep mirror inspect --config mirror.yaml /registry/cluster.x-k8s.io/machines/cpaas-system/m1`

func newInspect(streams genericiooptions.IOStreams) *cobra.Command {
	p := &pairCommand{streams: streams}
	return p.bind(&cobra.Command{
		Use: "inspect KEY…", Short: "Show what both sides hold under a key", Long: inspectLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("no KEY is given; lockstep mirror check lists the keys that are not equal")
			}
			return nil
		},
	}, p.inspect)
}

// inspected is one key on both sides.
type inspected struct {
	selection.Verdict
	// State is equal, missed, surplus, absent, or in which way the values differ.
	State   string `json:"state"`
	Primary *value `json:"primary,omitempty"`
	Standby *value `json:"standby,omitempty"`
}

// value is what may be shown of one.
type value struct {
	Create   int64      `json:"createRevision"`
	Mod      int64      `json:"modRevision"`
	Bytes    int        `json:"bytes"`
	Kind     string     `json:"kind,omitempty"`
	UID      string     `json:"uid,omitempty"`
	Owners   []string   `json:"owners,omitempty"`
	Deleting *time.Time `json:"deletionTimestamp,omitempty"`
	Unread   string     `json:"unread,omitempty"` // why nothing more is known
}

func (p *pairCommand) inspect(ctx context.Context, config *setting.Config, keys []string) error {
	rules, _, err := config.Rules()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime*2)
	defer cancel()
	primary, standby, done, err := config.Open(ctx)
	if err != nil {
		return err
	}
	defer done()
	standing, err := standby.Standing(ctx)
	if err != nil {
		return err
	}
	cut, err := standing.Cut()
	if err != nil {
		fmt.Fprintf(p.streams.ErrOut, "note: %v; both sides are shown as they are now\n", err)
		cut = replica.Cut{}
	}
	var all []inspected
	for _, key := range keys {
		one, err := inspectKey(ctx, primary, standby, rules, cut, key)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	return p.print(all, func(w io.Writer) error { return inspectText(w, all) })
}

func inspectKey(ctx context.Context, primary, standby *etcd.Client, rules selection.Rules, cut replica.Cut, key string) (inspected, error) {
	p, err := primary.Values(ctx, cut.Rev, []string{key})
	if err != nil {
		return inspected{}, fmt.Errorf("primary: %w", err)
	}
	s, err := standby.Values(ctx, cut.Mod, []string{key})
	if err != nil {
		return inspected{}, fmt.Errorf("standby: %w", err)
	}
	one := inspected{Verdict: rules.Classify(key), State: "absent"}
	for _, kv := range append(p[:len(p):len(p)], s...) {
		one.Verdict = rules.ClassifyObject(key, stored.Facts(kv.Value))
		break
	}
	switch {
	case len(p) == 1 && len(s) == 1 && bytes.Equal(p[0].Value, s[0].Value):
		one.State = "equal"
	case len(p) == 1 && len(s) == 1:
		one.State = string(stored.Differs(p[0].Value, s[0].Value))
	case len(p) == 1:
		one.State = string(replica.Missed)
	case len(s) == 1:
		one.State = string(replica.Extra)
	}
	one.Key = monitor.Printable(key)
	if len(p) == 1 {
		one.Primary = show(p[0])
	}
	if len(s) == 1 {
		one.Standby = show(s[0])
	}
	return one, nil
}

func show(kv replica.KV) *value {
	v := &value{Create: kv.Create, Mod: kv.Mod, Bytes: len(kv.Value)}
	object, err := stored.Read(kv.Value)
	if err != nil {
		v.Unread = err.Error()
		return v
	}
	v.Kind, v.UID = stored.ReadKin(kv.Value).Kind, string(object.Meta.UID)
	for _, o := range object.Meta.OwnerReferences {
		v.Owners = append(v.Owners, fmt.Sprintf("%s %s (UID %s)", o.Kind, o.Name, o.UID))
	}
	if object.Meta.DeletionTimestamp != nil {
		v.Deleting = &object.Meta.DeletionTimestamp.Time
	}
	return v
}

func inspectText(out io.Writer, all []inspected) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for i, one := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "KEY\t%s\nCLASS\t%s by rule %s: %s\nSTATE\t%s\n", one.Key, one.Class, one.Rule, one.Why, one.State)
		for _, side := range []struct {
			name string
			*value
		}{{"PRIMARY", one.Primary}, {"STANDBY", one.Standby}} {
			if side.value == nil {
				fmt.Fprintf(w, "%s\tnot there\n", side.name)
				continue
			}
			fmt.Fprintf(w, "%s\t%s\n", side.name, side.value)
		}
	}
	return w.Flush()
}

func (v *value) String() string {
	text := fmt.Sprintf("revision %d, created at %d, %d bytes", v.Mod, v.Create, v.Bytes)
	if v.Unread != "" {
		return text + "; " + v.Unread
	}
	text += fmt.Sprintf("; %s, UID %s", v.Kind, v.UID)
	for _, owner := range v.Owners {
		text += "; owned by " + owner
	}
	if v.Deleting != nil {
		text += "; being deleted since " + v.Deleting.UTC().Format(time.RFC3339)
	}
	return text
}
