package mc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
)

// JoinConfigOptions say whose join config is wanted.
type JoinConfigOptions struct {
	// Namespace is the common area.
	Namespace string
	// LeaderAPIServer is the URL members are told.
	LeaderAPIServer string
	// AllowLoopback accepts a URL that only this machine can use.
	AllowLoopback bool
	// MemberToken names a token Secret to put into the same file; "" puts none.
	MemberToken string
}

// JoinConfig is the file that members join with.
func JoinConfig(ctx context.Context, c client.Client, opts JoinConfigOptions) ([]byte, error) {
	what := fmt.Sprintf("cannot make a join config for Namespace %q", opts.Namespace)
	if err := checkServer(what, opts.LeaderAPIServer, opts.AllowLoopback); err != nil {
		return nil, err
	}
	set, err := onlySet(ctx, c, what, opts.Namespace)
	if err != nil {
		return nil, err
	}
	init := fmt.Sprintf("name the Namespace of the leader controller with -n, or make the ClusterSet: lockstep mc init -n %s", opts.Namespace)
	switch {
	case set == nil:
		return nil, failed(what, init, fmt.Errorf("it has no ClusterSet"))
	case isMember(set):
		return nil, failed(what, init, fmt.Errorf("its ClusterSet %q is a membership of cluster %q; the leader is %q", set.Name, set.Spec.ClusterID, leaderOf(set).ClusterID))
	}
	file := joinConfigOf(set, opts.LeaderAPIServer).Render()
	if opts.MemberToken == "" {
		return file, nil
	}
	token, err := tokenManifest(ctx, c, opts)
	return append(file, token...), explain(what, err)
}

func tokenManifest(ctx context.Context, c client.Client, opts JoinConfigOptions) ([]byte, error) {
	rotation, err := readRotation(ctx, c, opts.Namespace, opts.MemberToken)
	if err != nil {
		return nil, err
	}
	secret := rotation.Token()
	if secret == nil {
		return nil, failed(fmt.Sprintf("cannot use member token %q", opts.MemberToken),
			fmt.Sprintf("make it: lockstep mc create membertoken %s --cluster-id ID -n %s", opts.MemberToken, opts.Namespace),
			fmt.Errorf("no token Secret of that name in Namespace %q", opts.Namespace))
	}
	if err := joinfile.CheckToken(secret); err != nil {
		return nil, err
	}
	secret.Name = opts.MemberToken // after a rotation the leader's has another
	account, err := find[corev1.ServiceAccount](ctx, c, client.ObjectKey{Namespace: opts.Namespace, Name: opts.MemberToken})
	if err == nil && account != nil { // it is said where it may be read
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, v1alpha1.AnnotationClusterID, account.Annotations[v1alpha1.AnnotationClusterID])
	}
	return joinfile.RenderToken(secret)
}

// joinConfigOf is what a member has to know of the leader.
func joinConfigOf(set *v1alpha2.ClusterSet, server string) joinfile.Config {
	return joinfile.Config{
		ClusterSetID:    set.Name,
		LeaderClusterID: leaderOf(set).ClusterID,
		LeaderNamespace: set.Namespace,
		LeaderAPIServer: server,
	}
}
