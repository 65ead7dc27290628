package stage

import (
	"context"
	"maps"
	"os"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/machine"
)

// CPU is the processor time used so far, by kind of process: "controllers",
// "etcd", "kube-apiserver", "kube-controller-manager", "lab" (the hosts) and
// "bench" (this process).
func (s *Stage) CPU(ctx context.Context) (map[string]time.Duration, error) {
	used := map[string]time.Duration{"bench": machine.CPU(os.Getpid())}
	for _, c := range s.Clusters() {
		status, err := c.Lab.Status(ctx)
		if err != nil {
			return nil, err
		}
		used["lab"] += machine.CPU(status.HostPid)
		for _, component := range status.Components {
			used[component.Name] += machine.CPU(component.Pid)
		}
		for _, pod := range status.Pods {
			used["controllers"] += machine.CPU(pod.Pid)
		}
	}
	return used, nil
}

// Spent is the difference of two looks, in seconds.
func Spent(before, after map[string]time.Duration) map[string]float64 {
	spent := map[string]float64{}
	for kind := range maps.Keys(after) {
		spent[kind] = (after[kind] - before[kind]).Seconds()
	}
	return spent
}
