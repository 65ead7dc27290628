package mc

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// completionTime is how long a person may wait for the tab key.
const completionTime = 2 * time.Second

// completeAll walks the tree and offers values for flags known by their names,
// and for the NAMEs of objects.
func (s *shell) completeAll(root *cobra.Command) {
	values := map[string]func(*cobra.Command) []string{
		"namespace":    func(*cobra.Command) []string { return s.names(&corev1.NamespaceList{}, "", client.Object.GetName) },
		"clusterset":   func(*cobra.Command) []string { return s.names(&v1alpha2.ClusterSetList{}, "", client.Object.GetName) },
		"cluster-id":   func(*cobra.Command) []string { return s.names(&v1alpha1.MemberClusterAnnounceList{}, "", announcedID) },
		"member-token": s.tokenNames,
		"contexts":     func(*cobra.Command) []string { return s.contextNames() },
		"importers":    func(*cobra.Command) []string { return s.contextNames() },
		"unseen":       s.announcedIDs,
	}
	for _, command := range root.Commands() {
		for flag, offer := range values {
			if command.Flags().Lookup(flag) != nil {
				complete(command, flag, func() []string { return offer(command) })
			}
		}
		command.ValidArgsFunction = cobra.NoFileCompletions
		if offer := s.argumentNames(command); offer != nil {
			command.ValidArgsFunction = func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return offer(command), cobra.ShellCompDirectiveNoFileComp
			}
		}
		s.completeAll(command)
	}
}

// argumentNames is what the one argument of a command can be; nil when it has none.
func (s *shell) argumentNames(command *cobra.Command) func(*cobra.Command) []string {
	listed := func(list client.ObjectList) func(*cobra.Command) []string {
		return func(command *cobra.Command) []string {
			return s.names(list, namespaceOf(command), client.Object.GetName)
		}
	}
	switch command.Name() {
	case "rename":
		return s.announcedIDs
	case "membertoken":
		if command.Parent().Name() != "create" {
			return s.tokenNames
		}
		return nil
	case "rotate-token":
		return s.tokenNames
	case "export":
		return listed(&corev1.ServiceList{})
	case "unexport":
		return listed(&mcsv1beta1.ServiceExportList{})
	case "clusterset":
		return listed(&v1alpha2.ClusterSetList{})
	case "resourceexport":
		return listed(&v1alpha1.ResourceExportList{})
	case "resourceimport":
		return listed(&v1alpha1.ResourceImportList{})
	default:
		return nil
	}
}

// tokenNames are the accounts that stand for members; a token is called as its
// account, whatever the Secret is called.
func (s *shell) tokenNames(command *cobra.Command) []string {
	return s.names(&corev1.ServiceAccountList{}, namespaceOf(command), func(object client.Object) string {
		if object.GetAnnotations()[v1alpha1.AnnotationClusterID] == "" {
			return ""
		}
		return object.GetName()
	})
}

func namespaceOf(command *cobra.Command) string {
	namespace, _ := command.Flags().GetString("namespace")
	return namespace
}

// announcedIDs are the members that announced themselves in any of the clusters that
// the command is about: of several contexts one leads.
func (s *shell) announcedIDs(command *cobra.Command) []string {
	contexts, _ := command.Flags().GetStringSlice("contexts")
	if len(contexts) == 0 {
		contexts = []string{s.access.Context}
	}
	var ids []string
	for _, name := range contexts {
		there := *s
		there.access.Context = name
		ids = append(ids, there.names(&v1alpha1.MemberClusterAnnounceList{}, "", announcedID)...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func announcedID(object client.Object) string {
	if announce, ok := object.(*v1alpha1.MemberClusterAnnounce); ok {
		return announce.ClusterID
	}
	return ""
}

// names lists objects of the cluster, in one Namespace or in all (""); those
// called "" are left out. When it fails there is nothing to offer.
func (s *shell) names(list client.ObjectList, namespace string, name func(client.Object) string) []string {
	connection, err := s.access.Connect(io.Discard, completionTime)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	if err := connection.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var names []string
	_ = apply.Each(list, func(object client.Object) error {
		if n := name(object); n != "" {
			names = append(names, n)
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// contextNames completes contexts; a kubeconfig that cannot be read has none.
func (s *shell) contextNames() []string {
	names, _, err := s.access.contexts()
	if err != nil {
		return nil
	}
	return names
}
