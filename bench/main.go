// Command bench measures Lockstep against its goals, on real control planes of
// the lab: go run ./bench. README.md says what is measured and how.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctrllog.SetLogger(logr.Discard()) // of the libraries; what fails is returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case err == flag.ErrHelp:
		return
	case err != nil:
		os.Exit(2) // the flag package has said why
	}
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // which signal it was; all else follows from it
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	experiments, etcd      list
	runs, exports, imports int
	flood                  int
	quick, keep, profile   bool
	cold, admission        bool
	lockstep, dir, results string
}

func parse(args []string, errOut io.Writer) (options, error) {
	o := options{experiments: experimentNames(), etcd: list{noFsync, withFsync}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Var(&o.experiments, "experiments", "`names` of the experiments, with commas between")
	flags.Var(&o.etcd, "etcd", "how etcd writes, one stage after the other: no-fsync, fsync")
	flags.IntVar(&o.runs, "runs", 5, "how often each experiment is repeated")
	flags.IntVar(&o.exports, "exports", 200, "exports per run of P1")
	flags.IntVar(&o.flood, "flood", 1000, "exports at once in P2")
	flags.IntVar(&o.imports, "imports", 1000, "imports that a restart in P10 finds")
	flags.BoolVar(&o.quick, "quick", false, "a tiny run that only shows that the bench works")
	flags.BoolVar(&o.keep, "keep", false, "leave the clusters up at the end")
	flags.BoolVar(&o.profile, "profile", false, "write CPU profiles of controllers and API servers beside the results")
	flags.BoolVar(&o.admission, "admission", false, "install the admission webhooks of both roles")
	flags.BoolVar(&o.cold, "cold", false, "begin B1 with a demo that has to build everything, which takes many minutes")
	flags.StringVar(&o.lockstep, "lockstep", "", "`program` to measure; default: ./cmd/lockstep, built now")
	flags.StringVar(&o.dir, "dir", filepath.Join(os.TempDir(), "lockstep-bench"), "`folder` for the clusters; its disk is what fsync waits for")
	flags.StringVar(&o.results, "results", filepath.Join("bench", "results"), "`folder` for the results as JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.runs, o.exports, o.imports, o.flood = 1, 10, 20, 20
		o.etcd = list{noFsync}
	}
	err := o.validate(flags.Args())
	if err != nil {
		fmt.Fprintln(errOut, "error:", err)
	}
	return o, err
}

func (o options) validate(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("arguments %q are not understood; everything is a flag", rest)
	}
	if err := o.experiments.within("experiment", experimentNames()); err != nil {
		return err
	}
	if err := o.etcd.within("way of etcd", []string{noFsync, withFsync}); err != nil {
		return err
	}
	if min(o.runs, o.exports, o.imports, o.flood) < 1 {
		return fmt.Errorf("--runs, --exports, --flood and --imports must be positive")
	}
	return nil
}

// list is a flag of several values.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	*l = strings.Split(text, ",")
	return nil
}

func (l list) within(what string, known []string) error {
	for _, value := range l {
		if !slices.Contains(known, value) {
			return fmt.Errorf("there is no %s %q; there are %s", what, value, strings.Join(known, ", "))
		}
	}
	return nil
}
