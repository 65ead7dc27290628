package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeFolder is the folder of all Pods.
type nodeFolder string

func (a *Agent) folder() nodeFolder { return nodeFolder(filepath.Join(a.options.Dir, "pods")) }

// longestName keeps <namespace>_<name>_<uid> below the 255 bytes of a file
// name: a namespace has at most 63, a UID 36. Cut names stay apart by the UID.
const longestName = 150

// of is the folder of one Pod.
func (f nodeFolder) of(pod *corev1.Pod) podFolder {
	name := pod.Name
	if len(name) > longestName {
		name = name[:longestName]
	}
	return podFolder(filepath.Join(string(f), pod.Namespace+"_"+name+"_"+string(pod.UID)))
}

// sweep clears the folders of Pods that are not present.
func (f nodeFolder) sweep(present map[types.UID]bool) error {
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if present[uidOf(name)] {
			continue
		}
		if err := podFolder(filepath.Join(string(f), name)).clear(); err != nil {
			return err
		}
	}
	return nil
}

// longestMemory is how many folders of Pods that are gone are kept for their
// logs. A test that replaces Pods all day must not fill the disk.
const longestMemory = 100

// prune removes the oldest folders of Pods that are gone.
func (f nodeFolder) prune(present map[types.UID]bool) error {
	type past struct {
		path string
		at   time.Time
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return err
	}
	var gone []past
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && !present[uidOf(entry.Name())] {
			gone = append(gone, past{filepath.Join(string(f), entry.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(gone, func(a, b past) int { return b.at.Compare(a.at) })
	for _, p := range gone[min(longestMemory, len(gone)):] {
		err = errors.Join(err, os.RemoveAll(p.path))
	}
	return err
}

// uidOf is the UID in the name of a Pod's folder.
func uidOf(folder string) types.UID {
	return types.UID(folder[strings.LastIndexByte(folder, '_')+1:])
}

// podFolder is the folder of one Pod.
type podFolder string

func (f podFolder) volume(name string) string { return filepath.Join(string(f), "volumes", name) }
func (f podFolder) kubeconfig() string        { return filepath.Join(string(f), "kubeconfig") }
func (f podFolder) temporary() string         { return filepath.Join(string(f), "tmp") }
func (f podFolder) log(container string) string {
	return filepath.Join(string(f), container+".log")
}

// prepare makes the folder, and the one for temporary files, exist.
func (f podFolder) prepare() error { return os.MkdirAll(f.temporary(), 0o700) }

// turnLog makes room for the log of a new process and keeps the one before.
func (f podFolder) turnLog(container string) error {
	log := f.log(container)
	if err := os.Rename(log, log+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// clear removes everything but the logs: a Pod that is gone leaves no
// credentials, and its last words are what one looks for after a failure.
func (f podFolder) clear() error {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasSuffix(name, ".log") || strings.HasSuffix(name, ".log.1") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(string(f), name)); err != nil {
			return err
		}
	}
	return nil
}
