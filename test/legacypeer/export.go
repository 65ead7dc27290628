package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// exporter publishes exported Services through the first connection.
type exporter struct {
	*peer
	// passed are the objects as they were at the start, and passed over then: they
	// are looked at when they change once more (WK-63).
	passed map[client.ObjectKey]string
	// written is what was published in this process (WK-1).
	written map[client.ObjectKey]string
}

// present are the objects at the start. When the ClusterSet says Ready already, it
// never becomes so in this process, and nothing brings them back.
func (p *peer) present(ctx context.Context) (map[client.ObjectKey]string, error) {
	passed := map[client.ObjectKey]string{}
	set, err := p.clusterSet(ctx)
	if err != nil || set == nil || len(set.Status.Conditions) == 0 || set.Status.Conditions[0].Status != corev1.ConditionTrue {
		return passed, err
	}
	exports, err := p.exports(ctx)
	for i := range exports {
		passed[exports[i].key] = exports[i].version
	}
	return passed, err
}

// exported is a ServiceExport with its Service.
type exported struct {
	key     client.ObjectKey
	export  mcsv1beta1.ServiceExport
	service *corev1.Service
	version string // changes with either
}

func (p *peer) exports(ctx context.Context) ([]exported, error) {
	var list mcsv1beta1.ServiceExportList
	if err := p.local.List(ctx, &list); err != nil {
		return nil, err
	}
	var all []exported
	for _, x := range list.Items {
		e := exported{key: client.ObjectKeyFromObject(&x), export: x}
		service := &corev1.Service{}
		err := p.local.Get(ctx, e.key, service)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		e.version = string(x.UID)
		if err == nil {
			e.service = service
			e.version += " " + string(service.UID) + " " + service.ResourceVersion
		}
		all = append(all, e)
	}
	return all, nil
}

func (e *exporter) export(ctx context.Context) {
	for again := true; again; again = tick(ctx, e.every/5) {
		to := e.exporters()
		if to == nil {
			continue
		}
		all, err := e.exports(ctx)
		if err != nil {
			continue
		}
		for _, x := range all {
			if x.service == nil || e.passed[x.key] == x.version || e.written[x.key] == x.version {
				continue
			}
			if err := e.publish(ctx, to, x); err != nil {
				e.log.Error("cannot export", "service", x.key.String(), "as", to.id, "error", err)
				continue
			}
			e.written[x.key] = x.version
		}
		e.withdraw(ctx, to, all)
	}
}

// publish writes both exports and says so on the ServiceExport.
func (e *exporter) publish(ctx context.Context, to *connection, x exported) error {
	name := types.NamespacedName(x.key)
	service := &v1alpha1.ResourceExport{Spec: v1alpha1.ResourceExportSpec{Kind: v1alpha1.KindService,
		Service: &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: x.service.Spec.Ports}}}}
	subset := corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{{IP: x.service.Spec.ClusterIP}}}
	for _, port := range x.service.Spec.Ports {
		subset.Ports = append(subset.Ports, corev1.EndpointPort{Name: port.Name, Port: port.Port, Protocol: port.Protocol})
	}
	endpoints := &v1alpha1.ResourceExport{Spec: v1alpha1.ResourceExportSpec{Kind: v1alpha1.KindEndpoints,
		Endpoints: &v1alpha1.EndpointsExport{Subsets: []corev1.EndpointSubset{subset}}}}
	if err := to.put(ctx, identity.ServiceExportName(to.id, name), name, service); err != nil {
		return fmt.Errorf("Service: %w", err)
	}
	if err := to.put(ctx, identity.EndpointsExportName(to.id, name), name, endpoints); err != nil {
		return fmt.Errorf("Endpoints: %w", err)
	}
	condition := metav1.Condition{Type: string(mcsv1beta1.ServiceExportConditionValid), Status: metav1.ConditionTrue, Reason: "Succeed", LastTransitionTime: metav1.NewTime(time.Now())}
	if !meta.SetStatusCondition(&x.export.Status.Conditions, condition) {
		return nil
	}
	return e.local.Status().Update(ctx, &x.export)
}

// put writes one export under the ID of the connection.
func (c *connection) put(ctx context.Context, object string, service types.NamespacedName, wanted *v1alpha1.ResourceExport) error {
	present := &v1alpha1.ResourceExport{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.area, Name: object}, present)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	spec := wanted.Spec
	spec.ClusterID, spec.Namespace, spec.Name = c.id, service.Namespace, service.Name
	if err == nil {
		present.Spec = spec
		return c.Update(ctx, present)
	}
	return c.Create(ctx, &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.area, Name: object, Finalizers: []string{v1alpha1.FinalizerExport}, Labels: map[string]string{
			v1alpha1.LabelSourceClusterID: c.id, v1alpha1.LabelSourceKind: spec.Kind,
			v1alpha1.LabelSourceNamespace: service.Namespace, v1alpha1.LabelSourceName: service.Name,
		}},
		Spec: spec,
	})
}

// withdraw deletes what this process exported and nobody exports any more.
func (e *exporter) withdraw(ctx context.Context, to *connection, all []exported) {
	there := map[client.ObjectKey]bool{}
	for _, x := range all {
		there[x.key] = true
	}
	for key := range e.written {
		if there[key] {
			continue
		}
		name, gone := types.NamespacedName(key), true
		for _, object := range []string{identity.ServiceExportName(to.id, name), identity.EndpointsExportName(to.id, name)} {
			err := to.Delete(ctx, &v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{Namespace: to.area, Name: object}})
			gone = gone && client.IgnoreNotFound(err) == nil
		}
		if gone {
			delete(e.written, key)
		}
	}
}
