// Package launch works out how a container is started as a local process: its
// argument vector, its environment and its working directory. It starts
// nothing and reads nothing but its inputs.
package launch

import (
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/downward"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
)

// Inputs is everything the way a process is started may depend on.
type Inputs struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// Program is the argument vector that plays the container's image.
	Program []string
	Facts   downward.Facts
	Objects podref.Objects
	// Volumes is the local folder of each volume of the Pod.
	Volumes map[string]string
	// Defaults and Overrides are variables (NAME=value) every process gets. The
	// container's own win over the first and lose to the second; later ones win
	// over earlier ones.
	Defaults, Overrides []string
	// Dir is where a process works that asks for no other place.
	Dir string
}

// Process is how a container is started.
type Process struct {
	Argv []string
	// Env is the whole environment: nothing is inherited.
	Env []string
	Dir string
}

// Compose works out how the container is started. An error is for the person
// who wrote the Pod: something it names is not there or cannot be had.
func Compose(in Inputs) (Process, error) {
	own, err := containerEnvironment(in)
	if err != nil {
		return Process{}, err
	}
	mounts, err := mountsOf(in, own)
	if err != nil {
		return Process{}, err
	}
	argv := arguments(in.Program, in.Container.Image, in.Container.Command, in.Container.Args)
	// The program's own words are local already.
	given := 0
	if len(argv) >= len(in.Program) && slices.Equal(argv[:len(in.Program)], in.Program) {
		given = len(in.Program)
	}
	for i := given; i < len(argv); i++ {
		argv[i] = mounts.Rewrite(expand(argv[i], own.get))
	}
	dir := in.Dir
	if wanted := in.Container.WorkingDir; wanted != "" {
		// A folder of the image does not exist here; one in a volume does.
		if local := mounts.Rewrite(wanted); local != wanted {
			dir = local
		}
	}
	return Process{Argv: argv, Env: merge(in, own, mounts), Dir: dir}, nil
}

// merge lays the container's variables over the defaults, and the overrides
// over both.
func merge(in Inputs, own *environment, mounts Mounts) []string {
	all := environment{}
	for _, variable := range in.Defaults {
		all.assign(variable)
	}
	for _, name := range own.names {
		all.set(name, mounts.Rewrite(own.values[name]))
	}
	for _, variable := range in.Overrides {
		all.assign(variable)
	}
	out := make([]string, 0, len(all.names))
	for _, name := range all.names {
		out = append(out, name+"="+all.values[name])
	}
	return out
}

func mountsOf(in Inputs, env *environment) (Mounts, error) {
	var mounts []Mount
	for _, m := range in.Container.VolumeMounts {
		dir, ok := in.Volumes[m.Name]
		if !ok {
			return nil, fmt.Errorf("mount %s: the Pod has no volume %q", m.MountPath, m.Name)
		}
		if sub := m.SubPath + expand(m.SubPathExpr, env.get); sub != "" {
			if !filepath.IsLocal(sub) {
				return nil, fmt.Errorf("mount %s: subPath %q leads out of the volume", m.MountPath, sub)
			}
			dir = filepath.Join(dir, sub)
		}
		mounts = append(mounts, Mount{At: m.MountPath, Dir: dir})
	}
	return NewMounts(mounts...), nil
}
