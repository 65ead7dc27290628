package kubebin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Binaries are the paths of the programs of a control plane.
type Binaries struct {
	Etcd              string `json:"etcd"`
	Etcdutl           string `json:"etcdutl"`
	APIServer         string `json:"kubeAPIServer"`
	ControllerManager string `json:"kubeControllerManager"`
}

// programs are the names under which a folder holds the binaries.
var programs = []string{"etcd", "etcdutl", "kube-apiserver", "kube-controller-manager"}

// Options say where to look and where to build.
type Options struct {
	// Assets is a folder that holds the binaries, as KUBEBUILDER_ASSETS names
	// it. When set, nothing is built.
	Assets string
	// Cache is the folder below which builds are kept. Empty means
	// lockstep/kube in the user's cache folder.
	Cache string
}

// Ensure returns the binaries and builds them first where needed. A cold
// build takes several minutes; progress is written while it runs.
func Ensure(ctx context.Context, o Options, out io.Writer) (Binaries, error) {
	if o.Assets != "" {
		return inFolder(o.Assets)
	}
	cache := o.Cache
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return Binaries{}, fmt.Errorf("cannot find a folder for the control plane binaries: %w; set XDG_CACHE_HOME", err)
		}
		cache = filepath.Join(user, "lockstep", "kube")
	}
	b, err := newBuild(cache)
	if err != nil {
		return Binaries{}, err
	}
	if err := b.ensure(ctx, out); err != nil {
		return Binaries{}, err
	}
	return inFolder(b.target)
}

// inFolder names the binaries in a folder and reports all that are missing.
func inFolder(dir string) (Binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, err
	}
	var missing []error
	for _, name := range programs {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, fmt.Errorf("%s is missing in %s", name, dir))
		case err != nil:
			missing = append(missing, err)
		case info.IsDir() || info.Mode()&0o111 == 0:
			missing = append(missing, fmt.Errorf("%s is not a program", path))
		}
	}
	if len(missing) > 0 {
		return Binaries{}, fmt.Errorf("cannot use the control plane binaries: %w; complete the folder, or unset KUBEBUILDER_ASSETS to have them built", errors.Join(missing...))
	}
	return Binaries{
		Etcd:              filepath.Join(dir, "etcd"),
		Etcdutl:           filepath.Join(dir, "etcdutl"),
		APIServer:         filepath.Join(dir, "kube-apiserver"),
		ControllerManager: filepath.Join(dir, "kube-controller-manager"),
	}, nil
}
