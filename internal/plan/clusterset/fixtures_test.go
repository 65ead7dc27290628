package clusterset_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

const (
	timeout = 30 * time.Second
	eastUID = "uid-of-east"
)

// periods are the real ones.
var periods = clusterset.NewPeriods(func(d time.Duration) time.Duration { return d })

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// memberSet is the ClusterSet "fleet" as a user of member "east" writes it.
func memberSet(change ...func(*v1alpha2.ClusterSet)) *v1alpha2.ClusterSet {
	set := &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: "kube-system", Generation: 7},
		Spec: v1alpha2.ClusterSetSpec{
			ClusterID: "east", Namespace: "area",
			Leaders: []v1alpha2.LeaderCluster{{ClusterID: "tower", Server: "https://192.0.2.1:6443", Secret: "token"}},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

// leaderSet is the same ClusterSet in the leader cluster "tower".
func leaderSet(change ...func(*v1alpha2.ClusterSet)) *v1alpha2.ClusterSet {
	set := &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: "area", UID: "set-uid", Generation: 3},
		Spec:       v1alpha2.ClusterSetSpec{ClusterID: "tower", Leaders: []v1alpha2.LeaderCluster{{ClusterID: "tower"}}},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

// announce is a member's as it is in the common area: touched at a second of
// noon, or not yet when that is negative.
func announce(cluster string, touched int, change ...func(*v1alpha1.MemberClusterAnnounce)) v1alpha1.MemberClusterAnnounce {
	a := v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{
			Name: "member-announce-from-" + cluster, Namespace: "area", UID: types.UID("uid-" + cluster), ResourceVersion: "41",
			Annotations: map[string]string{v1alpha1.AnnotationPeer: v1alpha1.PeerVersion},
		},
		ClusterID: cluster, ClusterSetID: "fleet", LeaderClusterID: "tower",
	}
	if touched >= 0 {
		a.Annotations[v1alpha1.AnnotationTouch] = noon.Add(time.Duration(touched) * time.Second).Format(time.RFC3339)
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

// annotated sets an annotation; an empty value takes it away.
func annotated(key, value string) func(*v1alpha1.MemberClusterAnnounce) {
	return func(a *v1alpha1.MemberClusterAnnounce) {
		if value == "" {
			delete(a.Annotations, key)
			return
		}
		a.Annotations[key] = value
	}
}

func finalized(finalizers ...string) func(*v1alpha1.MemberClusterAnnounce) {
	return func(a *v1alpha1.MemberClusterAnnounce) { a.Finalizers = finalizers }
}

func deleted(a *v1alpha1.MemberClusterAnnounce) { a.DeletionTimestamp = &metav1.Time{Time: noon} }

func upstream(a *v1alpha1.MemberClusterAnnounce) { delete(a.Annotations, v1alpha1.AnnotationPeer) }
