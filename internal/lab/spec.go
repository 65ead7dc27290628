package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
)

// specFile holds the Spec below the directory of a lab.
const specFile = "lab.json"

// Spec is all that was decided when a lab was created. It is written once and
// read by every process of the lab.
type Spec struct {
	// Dir is the directory of the lab: absolute, without symbolic links, since
	// Down compares it with what processes carry in their environment.
	Dir string `json:"dir"`
	// Octet is the second number of all loopback and Pod addresses: 127.Octet.…
	// and 10.Octet.…; no two labs of a machine share it.
	Octet    byte             `json:"octet"`
	Binaries kubebin.Binaries `json:"binaries"`
	// Fsync makes etcd wait for the disk. Without it a start is faster, and only
	// a crash of the machine, not of etcd, can lose data.
	Fsync bool `json:"fsync,omitempty"`
	// Images maps the name of a container image, without tag, to the local
	// program that stands for it. Pods of other images are only marked Ready.
	Images map[string][]string `json:"images,omitempty"`
	// Env is added to the environment of every process that stands for a container.
	Env      []string      `json:"env,omitempty"`
	Clusters []ClusterSpec `json:"clusters"`
}

// ClusterSpec is what distinguishes one cluster of a lab.
type ClusterSpec struct {
	Name        string       `json:"name"`
	Address     netip.Addr   `json:"address"`
	ServiceCIDR netip.Prefix `json:"serviceCIDR"`
	PodCIDR     netip.Prefix `json:"podCIDR"`
	Ports       Ports        `json:"ports"`
	// Relays are the ports on Address at which another cluster, by name,
	// reaches this one.
	Relays map[string]RelayPorts `json:"relays,omitempty"`
}

// Ports are the ports of the components on the address of their cluster.
type Ports struct {
	Etcd              uint16 `json:"etcd"`
	EtcdPeer          uint16 `json:"etcdPeer"`
	APIServer         uint16 `json:"apiServer"`
	ControllerManager uint16 `json:"controllerManager"`
	// Egress is 0 in labs from before there were webhooks; see egress.
	Egress uint16 `json:"egress,omitempty"`
}

// RelayPorts are the ports of one link.
type RelayPorts struct {
	APIServer uint16 `json:"apiServer"`
	Etcd      uint16 `json:"etcd"`
}

// ClusterNames lists the clusters in the order they were asked for.
func (s *Spec) ClusterNames() []string {
	names := make([]string, 0, len(s.Clusters))
	for _, c := range s.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// overlaps tells whether all clusters have the same Service addresses.
func (s *Spec) overlaps() bool {
	return s.Clusters[0].ServiceCIDR == s.Clusters[len(s.Clusters)-1].ServiceCIDR
}

// cluster finds a cluster by name.
func (s *Spec) cluster(name string) (*ClusterSpec, error) {
	i := slices.IndexFunc(s.Clusters, func(c ClusterSpec) bool { return c.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("lab in %s has no cluster %q; it has %q", s.Dir, name, s.ClusterNames())
	}
	return &s.Clusters[i], nil
}

// save writes the spec so that a reader sees all of it or nothing.
func (s *Spec) save() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the lab: %w", err)
	}
	return writeFile(filepath.Join(s.Dir, specFile), append(data, '\n'))
}

// ErrNoLab is returned for a directory that holds no lab.
var ErrNoLab = errors.New("there is no lab; start one with `lockstep lab up`")

// Load reads the spec of the lab in a directory.
func Load(dir string) (*Spec, error) {
	data, err := os.ReadFile(filepath.Join(dir, specFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoLab)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the lab: %w", err)
	}
	spec := &Spec{}
	if err := json.Unmarshal(data, spec); err != nil {
		return nil, fmt.Errorf("cannot read the lab in %s: %s is damaged: %w; remove the lab with `lockstep lab down`", dir, specFile, err)
	}
	return spec, nil
}

// writeFile replaces a file in one step, readable by the owner only: most
// files of a lab are credentials.
func writeFile(path string, data []byte) error {
	temporary := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
