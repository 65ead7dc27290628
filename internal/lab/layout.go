package lab

import (
	"net"
	"path/filepath"
	"strconv"
)

// site is one cluster as its own processes see it: what was decided, and where
// its files are.
type site struct {
	ClusterSpec
	lab *Spec
	dir string // <lab>/clusters/<name>
}

func (s *Spec) site(name string) (*site, error) {
	c, err := s.cluster(name)
	if err != nil {
		return nil, err
	}
	return &site{ClusterSpec: *c, lab: s, dir: filepath.Join(s.Dir, "clusters", name)}, nil
}

// hostLog is the name of the log of a host that is a process of its own.
const hostLog = "host"

func (s *site) pki(name string) string  { return filepath.Join(s.dir, "pki", name) }
func (s *site) logs(name string) string { return filepath.Join(s.dir, "logs", name+".log") }
func (s *site) conf(name string) string { return filepath.Join(s.dir, "conf", name) }
func (s *site) etcdData() string        { return filepath.Join(s.dir, "etcd") }
func (s *site) snapshots() string       { return filepath.Join(s.dir, "snapshots") }
func (s *site) nodeDir() string         { return filepath.Join(s.dir, "node") }

// kubeconfig is a file with one user's access to this cluster.
func (s *site) kubeconfig(user string) string { return s.conf(user + ".kubeconfig") }

func (s *site) folders() []string {
	return []string{s.dir, s.pki(""), filepath.Dir(s.logs("")), s.conf(""), s.snapshots(), s.nodeDir()}
}

// hostPort is a port on the address of the cluster.
func (s *site) hostPort(port uint16) string {
	return net.JoinHostPort(s.Address.String(), strconv.Itoa(int(port)))
}

func (s *site) url(port uint16) string { return "https://" + s.hostPort(port) }
