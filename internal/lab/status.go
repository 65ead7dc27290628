package lab

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/lockstep-dev/lockstep/internal/lab/relay"
)

// Status is what a host tells about its cluster.
type Status struct {
	Cluster string `json:"cluster"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// HostPid is the process that supervises the cluster; zero when it does not run.
	HostPid    int               `json:"hostPid"`
	Components []ComponentStatus `json:"components"`
	Pods       []PodStatus       `json:"pods"`
	Links      []LinkStatus      `json:"links"`
}

// ComponentStatus is the state of one component.
type ComponentStatus struct {
	Name string `json:"name"`
	// Ready tells whether it serves; Reason why it does not.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	Pid    int    `json:"pid,omitempty"`
	// Restarts counts the ends that no orderly stop explains.
	Restarts int    `json:"restarts"`
	Log      string `json:"log"`
}

// PodStatus is a container that runs as a local process.
type PodStatus struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Pid       int    `json:"pid"`
	Restarts  int    `json:"restarts"`
	Log       string `json:"log"`
}

// LinkStatus is the condition of the link from another cluster.
type LinkStatus struct {
	From      string          `json:"from"`
	Server    string          `json:"server"`
	Condition relay.Condition `json:"condition"`
}

// Ready tells whether all components serve.
func (s Status) Ready() bool {
	return len(s.Components) > 0 && !slices.ContainsFunc(s.Components, func(c ComponentStatus) bool { return !c.Ready })
}

// Status looks at everything once.
func (h *Host) Status(ctx context.Context) (Status, error) {
	status := Status{
		Cluster:    h.site.Name,
		Server:     h.site.url(h.site.Ports.APIServer),
		HostPid:    os.Getpid(),
		Components: make([]ComponentStatus, len(componentNames)),
		Pods:       h.podStatus(),
		Links:      []LinkStatus{},
	}
	// At once: a frozen component takes as long to look at as a look may take.
	var looks sync.WaitGroup
	for i, name := range componentNames {
		looks.Go(func() { status.Components[i] = h.units[name].status(ctx) })
	}
	looks.Wait()
	for _, from := range slices.Sorted(maps.Keys(h.links)) {
		status.Links = append(status.Links, LinkStatus{
			From: from, Server: h.site.url(h.site.Relays[from].APIServer), Condition: h.links[from].apiServer.Condition(),
		})
	}
	return status, nil
}

func (u *unit) status(ctx context.Context) ComponentStatus {
	s := ComponentStatus{Name: u.name, Log: u.command.Log, Restarts: u.exitCount()}
	if p := u.running(); p != nil {
		s.Pid = p.Pid()
	}
	if err := u.ready(ctx); err != nil {
		s.Reason = err.Error()
	}
	s.Ready = s.Reason == ""
	return s
}
