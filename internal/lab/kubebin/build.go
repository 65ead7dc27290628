package kubebin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/lab/progress"
)

// build is one version of the binaries, wanted in a cache folder:
//
//	<cache>/v1.37.2-0123456789ab/       kube and a link to it per program
//	<cache>/v1.37.2-0123456789ab.lock   held by the one who builds
//	<cache>/v1.37.2-0123456789ab.work/  sources and unfinished output
type build struct {
	version version
	target  string
}

func newBuild(cache string) (*build, error) {
	v, err := sourceVersion()
	if err != nil {
		return nil, err
	}
	hash, err := sourceHash()
	if err != nil {
		return nil, err
	}
	return &build{version: v, target: filepath.Join(cache, v.full+"-"+hash)}, nil
}

// ensure builds unless the result is there. The result appears by one rename,
// so what is there is whole.
func (b *build) ensure(ctx context.Context, out io.Writer) error {
	if b.done() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(b.target), 0o755); err != nil {
		return fmt.Errorf("cannot make the cache for control plane binaries: %w", err)
	}
	line := progress.New(out)
	defer line.Clear()
	unlock, err := lock(ctx, b.target+".lock", func() {
		line.Passing("waiting for another build of the control plane (%s)", b.target)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if b.done() { // by the one who held the lock
		return nil
	}
	if err := b.run(ctx, line); err != nil {
		return fmt.Errorf("cannot build the control plane %s: %w", b.version.full, err)
	}
	line.Lasting("built Kubernetes %s control plane in %s", b.version.full, b.target)
	return nil
}

func (b *build) done() bool {
	_, err := os.Stat(b.target)
	return err == nil
}

func (b *build) run(ctx context.Context, line *progress.Line) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("%w; install Go (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with %s", err, strings.Join(programs, ", "))
	}
	work := b.target + ".work"
	if err := os.RemoveAll(work); err != nil { // of a build that was killed
		return err
	}
	defer os.RemoveAll(work)
	source, result := filepath.Join(work, "source"), filepath.Join(work, "result")
	if err := writeSource(source); err != nil {
		return err
	}
	line.Lasting("building Kubernetes %s control plane: minutes for the first time, then kept in %s", b.version.full, b.target)
	total, err := b.countPackages(ctx, goTool, source, line)
	if err != nil {
		return err
	}
	if err := b.compile(ctx, goTool, source, filepath.Join(result, "kube"), total, line); err != nil {
		return err
	}
	if err := linkPrograms(result); err != nil {
		return err
	}
	if err := os.Rename(result, b.target); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// downloading begins the go tool's line about a module it fetches.
const downloading = "go: downloading "

// countPackages downloads what is missing and returns how many packages the
// build has at most to compile.
func (b *build) countPackages(ctx context.Context, goTool, source string, line *progress.Line) (int, error) {
	downloads, total := 0, 0
	list := goCommand{tool: goTool, dir: source, args: []string{"list", "-deps", "."}}
	list.result = func(string) { total++ }
	list.report = func(text string) {
		if module, ok := strings.CutPrefix(text, downloading); ok {
			downloads++
			line.Passing("downloading modules: %d so far, now %s", downloads, module)
		}
	}
	err := list.run(ctx)
	return total, err
}

// compile builds the one program. The go tool reports no package that is in
// its build cache already, hence "up to".
func (b *build) compile(ctx context.Context, goTool, source, output string, total int, line *progress.Line) error {
	const versions = "k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s",
		versions, b.version.full, versions, b.version.major, versions, b.version.minor)
	compile := goCommand{tool: goTool, dir: source}
	compile.args = []string{"build", "-v", "-buildvcs=false", "-ldflags=" + flags, "-o", output, "."}
	compile.result = func(string) {}
	compiled := 0
	compile.report = func(string) {
		compiled++
		line.Passing("compiling: %d of up to %d packages", compiled, total)
	}
	line.Passing("compiling up to %d packages", total)
	return compile.run(ctx)
}

func linkPrograms(dir string) error {
	for _, name := range programs {
		if err := os.Symlink("kube", filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
