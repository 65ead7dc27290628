// Package stage is where experiments take place: real clusters of the lab, the
// manifests of both roles installed in them as anywhere, the controllers as Pods
// that run as processes of their own, and the members joined.
//
// Members reach the leader's API server directly, not through the lab's relays:
// a figure should not contain a hop that only a lab has.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
	"github.com/lockstep-dev/lockstep/internal/lab/progress"
)

// patience bounds what takes seconds when it works.
const patience = 2 * time.Minute

// Options of a stage.
type Options struct {
	// Dir is the folder of the lab. What an earlier stage left there is removed.
	Dir string
	// Lockstep is the program whose controllers are measured.
	Lockstep string
	Binaries kubebin.Binaries
	// Fsync makes etcd wait for the disk at every write.
	Fsync bool
	// Admission installs the webhooks of both roles, so that API servers ask the
	// controllers about writes.
	Admission bool
	// North raises a third member.
	North bool
	// Progress hears of what takes long.
	Progress io.Writer
}

// Stage is one ClusterSet: a leader that is no member, and two members or three.
type Stage struct {
	Leader, East, West *Cluster
	North              *Cluster // nil on most stages
	// Lab has the links between the clusters.
	Lab *lab.Lab
	// Version of the API servers.
	Version string
	dir     string
}

// Cluster is an administrator's access to one cluster.
type Cluster struct {
	client.WithWatch
	Name   string
	Config *rest.Config
	Lab    *lab.Cluster
	// Controller is the one Deployment of Lockstep in this cluster.
	Controller Controller
	spec       lab.ClusterSpec
}

// Raise makes a stage that is ready for experiments.
func Raise(ctx context.Context, o Options) (_ *Stage, err error) {
	if _, err := lab.Down(ctx, o.Dir); err != nil {
		return nil, err
	}
	s := &Stage{dir: o.Dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Lower())
		}
	}()
	if err := s.start(ctx, o); err != nil {
		return nil, err
	}
	if err := s.install(ctx, o.Admission); err != nil {
		return nil, err
	}
	return s, s.join(ctx)
}

// Lower ends all processes of the stage and removes its files. It works
// without the context of what went before, which may have been cancelled.
func (s *Stage) Lower() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := lab.Down(ctx, s.dir)
	return err
}

// Clusters lists all clusters.
func (s *Stage) Clusters() []*Cluster { return append([]*Cluster{s.Leader}, s.Members()...) }

// Members lists all clusters but the leader.
func (s *Stage) Members() []*Cluster {
	if s.North != nil {
		return []*Cluster{s.East, s.West, s.North}
	}
	return []*Cluster{s.East, s.West}
}

func (s *Stage) start(ctx context.Context, o Options) error {
	env := []string{"LOCKSTEP_ALLOW_LOOPBACK=true", fmt.Sprintf("LOCKSTEP_PPROF_ADDRESS=:%d", profilePort)}
	names := []string{"leader", "east", "west"}
	if o.North {
		names = append(names, "north")
	}
	line := progress.New(o.Progress)
	defer line.Clear()
	started, _, err := lab.Up(ctx, lab.UpOptions{
		Options: lab.Options{
			Dir: o.Dir, Clusters: names, Binaries: o.Binaries, Fsync: o.Fsync,
			Images: map[string][]string{"lockstep": {o.Lockstep}}, Env: env,
		},
		// Hosts in processes of their own, so that what they do for the lab is
		// not done by the process that measures.
		HostCommand: []string{o.Lockstep, "lab", "host"},
	}, line)
	if err != nil {
		return err
	}
	s.Lab = started
	spec, err := lab.Load(o.Dir)
	if err != nil {
		return err
	}
	open := func(i int, controller Controller) (c *Cluster) {
		if err == nil {
			c, err = openCluster(started, spec.Clusters[i], controller)
		}
		return c
	}
	s.Leader, s.East, s.West = open(0, leaderController), open(1, memberController), open(2, memberController)
	if o.North {
		s.North = open(3, memberController)
	}
	if err != nil {
		return err
	}
	s.Version, err = version(s.Leader.Config)
	return err
}

func openCluster(l *lab.Lab, spec lab.ClusterSpec, controller Controller) (*Cluster, error) {
	c, err := l.Cluster(spec.Name)
	if err != nil {
		return nil, err
	}
	config := c.RESTConfig()
	config.UserAgent = "lockstep-bench" // not that of a controller, whose writes are counted
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, fmt.Errorf("cannot use cluster %q: %w", spec.Name, err)
	}
	return &Cluster{direct, spec.Name, config, c, controller, spec}, nil
}

func version(config *rest.Config) (string, error) {
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	info, err := known.ServerVersion()
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

// install puts each role where it belongs, as the manifests have it: two
// replicas, one of them active.
func (s *Stage) install(ctx context.Context, admission bool) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range s.Clusters() {
		group.Go(func() error {
			objects, err := config.Render(c.Controller.role, config.Options{Admission: admission})
			if err != nil {
				return err
			}
			if _, err = install.Apply(ctx, c.WithWatch, objects, install.Options{AvailableWithin: patience}); err != nil {
				return fmt.Errorf("cluster %q: %w", c.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (s *Stage) join(ctx context.Context) error {
	if _, err := mc.Init(ctx, s.Leader, mc.InitOptions{
		Namespace: Area, ClusterSet: ClusterSet, ClusterID: LeaderID, Wait: patience,
	}); err != nil {
		return err
	}
	for _, c := range s.Members() {
		token, err := mc.CreateMemberToken(ctx, s.Leader, mc.MemberTokenOptions{
			Namespace: Area, Name: c.Name + "-token", ClusterID: c.Name,
		})
		if err != nil {
			return err
		}
		if _, err = mc.Join(ctx, c, mc.JoinOptions{
			Namespace: c.Controller.Namespace, ClusterSet: ClusterSet, ClusterID: c.Name,
			LeaderClusterID: LeaderID, LeaderNamespace: Area, LeaderAPIServer: s.Leader.Config.Host,
			AllowLoopback: true, Token: token.Secret, Wait: patience,
		}); err != nil {
			return err
		}
	}
	return nil
}

// ClusterSet that all clusters belong to, and the cluster ID of its leader.
const (
	ClusterSet = "bench"
	LeaderID   = "leader"
)

// Area is the Namespace of the common area in the leader cluster.
const Area = v1alpha1.DefaultLeaderNamespace
