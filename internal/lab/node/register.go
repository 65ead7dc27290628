package node

import (
	"context"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	// The node lifecycle controller calls a node lost after 40 s without a
	// renewal. A kubelet renews every 10 s; so do we.
	beatInterval  = 10 * time.Second
	beatRetry     = time.Second
	leaseDuration = 40 * time.Second
	// statusInterval is how often the heartbeat in the Node's conditions moves;
	// the Lease is the real one, and each move is a write to every watcher.
	statusInterval = 5 * time.Minute
)

var force = metav1.ApplyOptions{FieldManager: fieldManager, Force: true}

// beat keeps the Node registered and alive. The Node is applied as a whole each
// time, so one that somebody deleted or marked lost is put right; when nothing
// differs, the API server writes nothing.
func (a *Agent) beat(ctx context.Context) {
	started := time.Now()
	for {
		next := beatInterval
		if err := a.register(ctx, started); err != nil && ctx.Err() == nil {
			a.log.Warn("node could not be renewed", "error", err)
			next = beatRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

func (a *Agent) register(ctx context.Context, started time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, beatInterval)
	defer cancel()
	name := a.options.Name
	version, err := a.client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	object := applycorev1.Node(name).
		WithLabels(map[string]string{
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   runtime.GOOS,
			corev1.LabelArchStable: runtime.GOARCH,
		}).
		WithSpec(applycorev1.NodeSpec().WithPodCIDR(a.options.PodCIDR.String()).WithPodCIDRs(a.options.PodCIDR.String()))
	if _, err := a.client.CoreV1().Nodes().Apply(ctx, object, force); err != nil {
		return err
	}
	status := applycorev1.Node(name).WithStatus(a.nodeStatus(version.GitVersion, started))
	if _, err := a.client.CoreV1().Nodes().ApplyStatus(ctx, status, force); err != nil {
		return err
	}
	lease := applycoordinationv1.Lease(name, corev1.NamespaceNodeLease).
		WithSpec(applycoordinationv1.LeaseSpec().
			WithHolderIdentity(name).
			WithLeaseDurationSeconds(int32(leaseDuration / time.Second)).
			WithRenewTime(metav1.NowMicro()))
	_, err = a.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Apply(ctx, lease, force)
	return err
}

func (a *Agent) nodeStatus(version string, started time.Time) *applycorev1.NodeStatusApplyConfiguration {
	resources := allocatable()
	status := applycorev1.NodeStatus().
		WithAddresses(
			applycorev1.NodeAddress().WithType(corev1.NodeInternalIP).WithAddress(a.pool.Node().String()),
			applycorev1.NodeAddress().WithType(corev1.NodeHostName).WithAddress(a.options.Name)).
		WithCapacity(resources).
		WithAllocatable(resources).
		WithNodeInfo(applycorev1.NodeSystemInfo().
			WithKubeletVersion(version). // a node of the same release as its control plane
			WithContainerRuntimeVersion("process://1").
			WithOSImage("Lockstep lab").
			WithOperatingSystem(runtime.GOOS).
			WithArchitecture(runtime.GOARCH).
			WithMachineID("").WithSystemUUID("").WithBootID("").WithKernelVersion("").WithKubeProxyVersion(""))
	add := func(kind corev1.NodeConditionType, state corev1.ConditionStatus, reason, message string) {
		status.WithConditions(applycorev1.NodeCondition().
			WithType(kind).WithStatus(state).WithReason(reason).WithMessage(message).
			WithLastTransitionTime(metav1.NewTime(started)).
			WithLastHeartbeatTime(metav1.NewTime(time.Now().Truncate(statusInterval))))
	}
	add(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "the node agent runs Pods as local processes")
	add(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "not measured")
	add(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "not measured")
	add(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "not measured")
	return status
}

// allocatable is what the node claims to have. Nobody schedules by it; it
// answers downward API questions for containers without limits.
func allocatable() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           resource.MustParse("8Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("64Gi"),
		corev1.ResourcePods:             resource.MustParse("50k"),
	}
}
