package mc

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// completionTime is how long a person may wait for the tab key.
const completionTime = 2 * time.Second

// completeAll walks the tree and offers values for flags known by their names.
func (s *shell) completeAll(root *cobra.Command) {
	values := map[string]func() []string{
		"namespace":  func() []string { return s.names(&corev1.NamespaceList{}, client.Object.GetName) },
		"clusterset": func() []string { return s.names(&v1alpha2.ClusterSetList{}, client.Object.GetName) },
		"cluster-id": func() []string { return s.names(&v1alpha1.MemberClusterAnnounceList{}, announcedID) },
		"contexts":   s.contextNames,
	}
	for _, command := range root.Commands() {
		for flag, offer := range values {
			if command.Flags().Lookup(flag) != nil {
				complete(command, flag, offer)
			}
		}
		s.completeAll(command)
	}
}

func announcedID(object client.Object) string {
	if announce, ok := object.(*v1alpha1.MemberClusterAnnounce); ok {
		return announce.ClusterID
	}
	return ""
}

// names lists objects of the cluster; when that fails there is nothing to offer.
func (s *shell) names(list client.ObjectList, name func(client.Object) string) []string {
	connection, err := s.access.Connect(io.Discard, completionTime)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	if err := connection.List(ctx, list); err != nil {
		return nil
	}
	var names []string
	_ = apply.Each(list, func(object client.Object) error {
		names = append(names, name(object))
		return nil
	})
	return names
}

// contextNames completes contexts; a kubeconfig that cannot be read has none.
func (s *shell) contextNames() []string {
	names, _, err := s.access.contexts()
	if err != nil {
		return nil
	}
	return names
}
