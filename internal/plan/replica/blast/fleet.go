package blast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// machineryGroup is that of Cluster API; its providers are below it.
const machineryGroup = "cluster.x-k8s.io"

func isFleet(i stored.Identity) bool {
	return i.Group == machineryGroup || strings.HasSuffix(i.Group, "."+machineryGroup)
}

// fleet is what objects of Cluster API say beyond their metadata.
type fleet struct {
	machines map[id]machine
	sets     []set
	// disks by Namespace and name of the machine they are attached to.
	disks map[string][]string
}

// machine is what a Machine stands for.
type machine struct{ node, infrastructure string }

// set is an object that wants a number of machines.
type set struct {
	*node
	wants int
	busy  string // why it is changing; empty when it is not
}

// What is read of them. Fields have the same place in all versions of the kinds.
type fleetObject struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas          *int `json:"replicas"`
		InfrastructureRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"infrastructureRef"`
	} `json:"spec"`
	Status struct {
		NodeRef struct {
			Name string `json:"name"`
		} `json:"nodeRef"`
		ObservedGeneration int64  `json:"observedGeneration"`
		Replicas           int    `json:"replicas"`
		UpdatedReplicas    *int   `json:"updatedReplicas"`
		UpToDateReplicas   *int   `json:"upToDateReplicas"`
		ReadyReplicas      int    `json:"readyReplicas"`
		Phase              string `json:"phase"`
		Disks              []struct {
			IP       string `json:"ip"`
			Hostname string `json:"hostname"`
			Slot     int    `json:"slot"`
			Name     string `json:"name"`
			Machine  string `json:"ownerMachineName"`
		} `json:"persistentDiskStatus"`
	} `json:"status"`
}

const (
	kindMachine    = "Machine"
	kindSet        = "MachineSet"
	kindDeployment = "MachineDeployment"
)

// wantsMachines: a MachineSet or MachineDeployment, or a control plane with a
// number of replicas.
func wantsMachines(i stored.Identity) bool {
	return i.Group == machineryGroup && (i.Kind == kindSet || i.Kind == kindDeployment) ||
		i.Group == "controlplane."+machineryGroup && strings.HasSuffix(i.Kind, "ControlPlane")
}

func (f *fleet) add(n *node, value []byte) {
	if !isFleet(n.Identity) {
		return
	}
	var o fleetObject
	if json.Unmarshal(value, &o) != nil {
		return // custom resources are JSON; what does not fit this shape is of another kind
	}
	if f.machines == nil {
		f.machines, f.disks = map[id]machine{}, map[string][]string{}
	}
	for _, d := range o.Status.Disks {
		at := n.Namespace + "/" + d.Machine
		f.disks[at] = append(f.disks[at], fmt.Sprintf("%s, %s, slot %d: disk %s", n.thing(), cmp.Or(d.IP, d.Hostname), d.Slot, d.Name))
	}
	switch {
	case n.Kind == kindMachine && n.Group == machineryGroup:
		m := machine{node: o.Status.NodeRef.Name}
		if o.Spec.InfrastructureRef.Name != "" {
			m.infrastructure = o.Spec.InfrastructureRef.Kind + " " + o.Spec.InfrastructureRef.Name
		}
		f.machines[n.self] = m
	case wantsMachines(n.Identity) && (o.Spec.Replicas != nil || n.Kind == kindSet || n.Kind == kindDeployment):
		wants := 1 // the default of Cluster API
		if o.Spec.Replicas != nil {
			wants = *o.Spec.Replicas
		}
		f.sets = append(f.sets, set{n, wants, o.busy(wants)})
	}
}

// busy is why the number of machines, or their version, is changing.
func (o fleetObject) busy(wants int) string {
	updated := cmp.Or(o.Status.UpToDateReplicas, o.Status.UpdatedReplicas)
	switch s := o.Status; {
	case s.ObservedGeneration != 0 && s.ObservedGeneration < o.Metadata.Generation:
		return "its latest change has not been looked at"
	case s.Replicas != wants:
		return fmt.Sprintf("it has %d of %d machines", s.Replicas, wants)
	case updated != nil && *updated != wants:
		return fmt.Sprintf("%d of %d machines are of its latest version", *updated, wants)
	case s.ReadyReplicas != wants:
		return fmt.Sprintf("%d of %d machines are ready", s.ReadyReplicas, wants)
	}
	return ""
}

// attached are the disks of a machine, by its name or by that of its
// infrastructure object.
func (f *fleet) attached(n *node, m machine) []string {
	disks := slices.Clone(f.disks[n.Namespace+"/"+n.Name])
	if _, name, ok := strings.Cut(m.infrastructure, " "); ok && name != n.Name {
		disks = append(disks, f.disks[n.Namespace+"/"+name]...)
	}
	return disks
}

// Mismatch is a number of machines that a controller would make, or take away.
type Mismatch struct {
	Thing Thing `json:"object"`
	// Wants machines, or for a MachineDeployment those of its MachineSets together.
	Wants, Has int
}

// mismatches compares what is wanted with what lives when the deletions are over.
// A MachineDeployment is compared with what its MachineSets want, so no machine is
// counted twice.
func (f *fleet) mismatches(fates []*fate) (all []Mismatch) {
	has, wanted, alive := map[id]int{}, map[id]int{}, map[id]bool{}
	for _, one := range f.sets {
		wanted[one.self] = one.wants
	}
	for _, one := range fates {
		alive[one.self] = !one.marked
		if one.marked || one.Controller < 0 || one.owners[one.Controller].of == nil {
			continue
		}
		owner := one.owners[one.Controller].of.self
		switch {
		case one.Group != machineryGroup:
		case one.Kind == kindMachine:
			has[owner]++
		case one.Kind == kindSet:
			has[owner] += wanted[one.self]
		}
	}
	for _, one := range f.sets {
		if alive[one.self] && one.mirrored && has[one.self] != one.wants {
			all = append(all, Mismatch{one.thing(), one.wants, has[one.self]})
		}
	}
	return all
}

// changes are the objects that are changing on this side.
func (f *fleet) changes(nodes []*node) (all []Change) {
	for _, one := range f.sets {
		if one.busy != "" && one.mirrored && !one.Deleting {
			all = append(all, Change{one.thing(), one.busy})
		}
	}
	for _, n := range nodes {
		if n.mirrored && n.Deleting && n.Group == machineryGroup {
			all = append(all, Change{n.thing(), "it is being deleted"})
		}
	}
	return all
}

// Change is a workload cluster's object that is changing.
type Change struct {
	Thing Thing  `json:"object"`
	Why   string `json:"why"`
}
