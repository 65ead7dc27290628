package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
)

// Options describe a lab that is to be created.
type Options struct {
	// Dir is the directory of the lab; it is made with mode 0700.
	Dir string
	// Clusters are the names of the clusters, which are also the names of their
	// contexts in the kubeconfig.
	Clusters []string
	// OverlapServiceCIDRs gives all clusters the same range of Service
	// addresses, as clusters have that were set up independently.
	OverlapServiceCIDRs bool
	// Fsync makes etcd wait for the disk at every write.
	Fsync bool
	// Binaries are the programs of the control plane, from kubebin.Ensure.
	Binaries kubebin.Binaries
	// Images maps names of container images, without tag, to the command line
	// of the local program that stands for them.
	Images map[string][]string
	// Env is added to the environment of those programs.
	Env []string
}

// HostsLog is the file below the directory of a lab in which a process that
// runs the hosts itself keeps what they report.
const HostsLog = "hosts.log"

// create decides about a new lab and writes its Spec. The returned claim holds
// the addresses of the lab and is released by the caller.
func create(o Options) (*Spec, *claim, error) {
	if runtime.GOOS != "linux" {
		return nil, nil, fmt.Errorf("cannot create a lab on %s: it needs the loopback addresses 127.0.0.0/8 and the /proc files of Linux; run it in a virtual machine", runtime.GOOS)
	}
	if err := CheckNames(o.Clusters); err != nil {
		return nil, nil, fmt.Errorf("cannot create a lab: %w", err)
	}
	dir, err := makeDir(o.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a lab: %w", err)
	}
	if err := checkEmpty(dir); err != nil {
		return nil, nil, fmt.Errorf("cannot create a lab: %w", err)
	}
	held, err := claimFor(dir)
	if err != nil {
		return nil, nil, err
	}
	spec := &Spec{Dir: dir, Octet: held.octet, Binaries: o.Binaries, Fsync: o.Fsync, Images: o.Images, Env: o.Env}
	spec.Clusters, err = allocateClusters(held.octet, o.Clusters, o.OverlapServiceCIDRs)
	if err == nil {
		err = spec.save()
	}
	if err != nil {
		held.release()
		return nil, nil, fmt.Errorf("cannot create the lab in %s: %w", dir, err)
	}
	return spec, held, nil
}

// makeDir makes the directory of a lab and returns the one name for it that
// all processes of the lab agree on.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory was named")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return canonical(dir)
}

// ownFiles are what a lab puts into its directory.
var ownFiles = []string{"clusters", "kubeconfig", HostsLog, upLock, specFile}

// checkEmpty keeps a lab out of a folder that serves something else.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !slices.Contains([]string{HostsLog, upLock}, entry.Name()) {
			return fmt.Errorf("%s is not empty (it holds %s) and holds no lab; choose another directory", dir, entry.Name())
		}
	}
	return nil
}

// canonical is the absolute path of a directory without symbolic links. The
// directory need not exist: processes of a lab may outlive it.
func canonical(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		parent, err := canonical(filepath.Dir(dir))
		if err != nil {
			return "", err
		}
		return filepath.Join(parent, filepath.Base(dir)), nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot have a lab in %s: %w; choose another directory", dir, err)
	}
	return resolved, nil
}
