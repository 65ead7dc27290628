package stage

import (
	"context"
	"os"

	"github.com/lockstep-dev/lockstep/bench/internal/machine"
)

// Effort is processor time, and time spent waiting for a processor, by kind of
// process: "controllers", "etcd", "kube-apiserver", "kube-controller-manager",
// "lab" (the hosts) and "bench" (this process).
type Effort struct {
	CPU    map[string]float64 `json:"cpuSeconds"`
	Waited map[string]float64 `json:"waitedSeconds"`
}

// Effort so far.
func (s *Stage) Effort(ctx context.Context) (Effort, error) {
	e := Effort{CPU: map[string]float64{}, Waited: map[string]float64{}}
	e.add("bench", os.Getpid())
	for _, c := range s.Clusters() {
		if err := c.addEffort(ctx, e); err != nil {
			return e, err
		}
	}
	return e, nil
}

// Effort so far of one cluster.
func (c *Cluster) Effort(ctx context.Context) (Effort, error) {
	e := Effort{CPU: map[string]float64{}, Waited: map[string]float64{}}
	return e, c.addEffort(ctx, e)
}

func (c *Cluster) addEffort(ctx context.Context, e Effort) error {
	status, err := c.Lab.Status(ctx)
	if err != nil {
		return err
	}
	e.add("lab", status.HostPid)
	for _, component := range status.Components {
		e.add(component.Name, component.Pid)
	}
	for _, pod := range status.Pods {
		e.add("controllers", pod.Pid)
	}
	return nil
}

func (e Effort) add(kind string, pid int) {
	e.CPU[kind] += machine.CPU(pid).Seconds()
	e.Waited[kind] += machine.Waited(pid).Seconds()
}

// Since is what was spent after an earlier look.
func (e Effort) Since(before Effort) Effort {
	return Effort{CPU: less(e.CPU, before.CPU), Waited: less(e.Waited, before.Waited)}
}

func less(a, b map[string]float64) map[string]float64 {
	difference := map[string]float64{}
	for kind, value := range a {
		difference[kind] = value - b[kind]
	}
	return difference
}
