package stage

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
)

// Controller is where the controller of a role is found.
type Controller struct {
	// Name is that of the role: "leader" or "member".
	Name       string
	Namespace  string
	role       config.Role
	deployment string
	lease      string
}

var (
	leaderController = Controller{"leader", v1alpha1.DefaultLeaderNamespace, config.Leader, "antrea-mc-controller", "lockstep-leader"}
	memberController = Controller{"member", v1alpha1.DefaultMemberNamespace, config.Member, "antrea-mc-controller", "lockstep-member"}
)

// Process is a Pod of a controller that runs as a local process.
type Process struct {
	Pod client.ObjectKey
	PID int
	// Restarts of the container before this process.
	Restarts int
	Log      string
}

// Active is the replica that holds the lease of this cluster's controller.
func (c *Cluster) Active(ctx context.Context) (Process, error) {
	lease := &coordinationv1.Lease{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: c.Controller.Namespace, Name: c.Controller.lease}, lease); err != nil {
		return Process{}, err
	}
	pod, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	if pod == "" {
		return Process{}, fmt.Errorf("no replica of the %s controller in %q is active", c.Controller.Name, c.Name)
	}
	status, err := c.Lab.Status(ctx)
	if err != nil {
		return Process{}, err
	}
	for _, p := range status.Pods {
		if p.Namespace == c.Controller.Namespace && p.Pod == pod {
			return Process{Pod: client.ObjectKey{Namespace: p.Namespace, Name: p.Pod}, PID: p.Pid, Restarts: p.Restarts, Log: p.Log}, nil
		}
	}
	return Process{}, fmt.Errorf("Pod %q, the active replica of the %s controller in %q, runs no process", pod, c.Controller.Name, c.Name) //nolint:staticcheck // a kind
}

// AwaitWhole waits until all replicas of the controller are ready, none of them
// on its way out, and one is active.
func (c *Cluster) AwaitWhole(ctx context.Context) error {
	return Until(ctx, patience, fmt.Sprintf("all replicas of the %s controller in %q", c.Controller.Name, c.Name), func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		key := types.NamespacedName{Namespace: c.Controller.Namespace, Name: c.Controller.deployment}
		if err := c.Get(ctx, key, deployment); err != nil {
			return err
		}
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		if want, have := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status.ReadyReplicas; have != want || len(pods.Items) != int(want) {
			return fmt.Errorf("%d of %d replicas are ready, of %d Pods", have, want, len(pods.Items))
		}
		_, err := c.Active(ctx)
		return err
	})
}

// Until looks again until check has nothing to complain about.
func Until(ctx context.Context, limit time.Duration, what string, check func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check(limited)
		if err == nil {
			return nil
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%s: not after %s: %w", what, limit, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
