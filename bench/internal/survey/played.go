package survey

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// shop is the Namespace in which each cluster has its Services, as it seems.
const shop = "shop"

// played shows one Namespace of an API server as a cluster of its own.
type played struct {
	client.Client
	context, namespace string
}

// Get gives each cluster another UID.
func (p played) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := p.Client.Get(ctx, key, object, opts...)
	if n, ok := object.(*corev1.Namespace); ok && n.Name == metav1.NamespaceSystem {
		n.UID = types.UID(p.context)
	}
	return err
}

// List keeps to the Namespace of the cluster; what was exported there stands in
// the same Namespace in all clusters.
func (p played) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *corev1.NodeList, *rbacv1.ClusterRoleList, *rbacv1.ClusterRoleBindingList:
		return p.Client.List(ctx, list, opts...)
	}
	kind := list.GetObjectKind().GroupVersionKind().Kind
	if !strings.HasPrefix(kind, "Tier") && !strings.HasPrefix(kind, "ClusterNetworkPolicy") {
		opts = append(opts, client.InNamespace(p.namespace))
	}
	if err := p.Client.List(ctx, list, opts...); err != nil || p.namespace == area {
		return err
	}
	return apply.Each(list, func(object client.Object) error {
		if strings.HasPrefix(object.GetName(), servicePrefix) || strings.HasPrefix(object.GetName(), importedPrefix) {
			object.SetNamespace(shop)
		}
		return nil
	})
}
