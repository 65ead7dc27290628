package kubebin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
)

func TestAssetsFolderIsUsedAsItIs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"etcd", "etcdutl", "kube-apiserver", "kube-controller-manager"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got, err := kubebin.Ensure(t.Context(), kubebin.Options{Assets: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "kube-apiserver"); got.APIServer != want {
		t.Errorf("got %q, want %q", got.APIServer, want)
	}
}

func TestIncompleteAssetsFolderNamesAllThatIsMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o600); err != nil { // not executable
		t.Fatal(err)
	}
	_, err := kubebin.Ensure(t.Context(), kubebin.Options{Assets: dir}, nil)
	if err == nil {
		t.Fatal("an incomplete folder was accepted")
	}
	for _, want := range []string{"etcd is not a program", "kube-controller-manager is missing", "KUBEBUILDER_ASSETS"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

func TestMissingGoIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := kubebin.Ensure(t.Context(), kubebin.Options{Cache: t.TempDir()}, nil)
	if err == nil || !strings.Contains(err.Error(), `"go"`) || !strings.Contains(err.Error(), "KUBEBUILDER_ASSETS") {
		t.Errorf("got %v", err)
	}
}

// A module that cannot be had is named, and nothing half-made stays behind.
func TestFailedBuildNamesTheModuleAndLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOMODCACHE", t.TempDir())
	_, err := kubebin.Ensure(t.Context(), kubebin.Options{Cache: cache}, nil)
	if err == nil || !strings.Contains(err.Error(), "module lookup disabled by GOPROXY=off") {
		t.Fatalf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0], ".lock") {
		t.Errorf("the cache holds %q, %v; want the lock only", left, err)
	}
}

func TestWaitingForAnotherBuilderCanBeCancelled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cache := t.TempDir()
	hold(t, cache)
	var out strings.Builder
	_, err := kubebin.Ensure(ctx, kubebin.Options{Cache: cache}, &out)
	if !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "waiting for another build") {
		t.Errorf("got %v after %q", err, out.String())
	}
}

// hold takes the lock of the build in a cache, as a second builder would.
func hold(t *testing.T, cache string) {
	t.Helper()
	target, err := kubebin.Target(cache)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(target+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}
