// Command image makes what a release consists of: the container image of Lockstep,
// without a container runtime, and the archives of the plugin of kubectl.
//
//	go build per platform ─┬► one layer each ─► one index ─► OCI layout, archives
//	                       └► one archive each ─► sums ─► plugin manifest
//
// The same source, stamp and Go release give the same bytes, wherever and
// whenever they are built, so that anybody can check a digest by building it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `usage:
  image build --root DIR --out DIR [--version V] [--commit C] [--created SECONDS] [--platforms LIST]
  image push --out DIR REFERENCE
  image release --root DIR --out DIR [--version V] [--commit C] [--created SECONDS] [--platforms LIST]`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	out := flags.String("out", "", "folder of the result")
	root := flags.String("root", "", "the product's module")
	version := flags.String("version", "devel", "version of the build; also a tag")
	commit := flags.String("commit", "unknown", "commit of the source")
	created := flags.Int64("created", 0, "time of the source, in seconds since 1970")
	platforms := flags.String("platforms", "", "what to build for")
	if err := flags.Parse(args[1:]); err != nil || *out == "" {
		return errUsage
	}
	stamp := Stamp{Version: *version, Commit: *commit, Created: time.Unix(*created, 0).UTC()}
	switch {
	case args[0] == "build" && *root != "" && flags.NArg() == 0:
		index, err := Build(ctx, *root, split(*platforms, "linux/amd64,linux/arm64"), stamp, os.Stderr)
		if err != nil {
			return err
		}
		return Save(*out, index, stamp, os.Stdout)
	case args[0] == "push" && flags.NArg() == 1:
		pushed, err := Push(ctx, *out, flags.Arg(0))
		if err == nil {
			fmt.Println(pushed)
		}
		return err
	case args[0] == "release" && *root != "" && flags.NArg() == 0:
		return Release(ctx, *root, *out, split(*platforms, "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"), stamp, os.Stdout)
	default:
		return errUsage
	}
}

func split(platforms, otherwise string) []string {
	return strings.Split(cmp.Or(platforms, otherwise), ",")
}
