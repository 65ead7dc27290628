package lab

import (
	"bytes"
	"context"

	"github.com/lockstep-dev/lockstep/internal/proc"
)

// Names of the components of a cluster.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
)

// componentNames lists the components in the order they need one another.
var componentNames = []string{Etcd, APIServer, ControllerManager}

// component is one process of a control plane as a value.
type component struct {
	Name string
	Path string
	Args []string
	// Ready looks once whether the process serves.
	Ready func(context.Context) error
}

// command is how the component is started.
func (s *site) command(c component) proc.Command {
	return proc.Command{
		Name: c.Name + " of cluster " + s.Name,
		Path: c.Path,
		Args: c.Args,
		Env:  []string{mark(s.lab.Dir)},
		Dir:  s.dir,
		Log:  s.logs(c.Name),
	}
}

// component describes one component.
func (s *site) component(name string) component {
	switch name {
	case Etcd:
		return s.etcd()
	case APIServer:
		return s.apiServer()
	default:
		return s.controllerManager()
	}
}

// flags turns "name=value" words into arguments.
func flags(words ...string) []string {
	args := make([]string, 0, len(words))
	for _, word := range words {
		args = append(args, "--"+word)
	}
	return args
}

// ensureConfiguration writes the files that components read.
func (s *site) ensureConfiguration() error {
	if err := writeFile(s.conf("authentication.yaml"), bytes.TrimLeft([]byte(authentication), "\n")); err != nil {
		return err
	}
	if err := writeFile(s.conf(egressFile), []byte(s.egressConfiguration())); err != nil {
		return err
	}
	for _, user := range []string{"admin", "controller-manager"} {
		if err := s.writeKubeconfig(user); err != nil {
			return err
		}
	}
	return nil
}
