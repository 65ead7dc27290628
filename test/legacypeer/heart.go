package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// peer is one member.
type peer struct {
	local     client.Client
	namespace string
	every     time.Duration
	log       *slog.Logger

	mu    sync.Mutex
	first *connection // that exporters keep for ever (WK-2); nil before there is one
}

// connection is a way to the common area, and who one is there.
type connection struct {
	client.Client
	access                  string // that it was made from
	id, area, set, leaderID string
}

// exporters is what writes exports.
func (p *peer) exporters() *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

// beat is the heartbeat (MEM-CS-3), until it ends with the second connection.
func (p *peer) beat(ctx context.Context) {
	var current *connection
	for again := true; again; again = tick(ctx, p.every) {
		set, err := p.clusterSet(ctx)
		if err != nil || set == nil || len(set.Spec.Leaders) == 0 {
			continue
		}
		second := false
		if current == nil || current.access != accessOf(set) {
			next, err := p.connect(ctx, set)
			if err != nil {
				p.log.Error("cannot connect", "error", err)
				continue
			}
			second, current = current != nil, next
			p.mu.Lock()
			if p.first == nil {
				p.first = next
			}
			p.mu.Unlock()
		}
		err = current.announce(ctx)
		if err != nil {
			p.log.Error("heartbeat failed", "error", err)
		}
		if err := p.report(ctx, set, err); err != nil {
			p.log.Error("cannot write the status", "error", err)
		}
		if second { // its importers cannot be registered a second time
			p.log.Error("controllers of that name are registered already")
			return
		}
	}
}

func accessOf(set *v1alpha2.ClusterSet) string {
	l := set.Spec.Leaders[0]
	return fmt.Sprintf("%s|%s|%s|%s", set.Spec.ClusterID, l.ClusterID, l.Server, l.Secret)
}

func (p *peer) clusterSet(ctx context.Context) (*v1alpha2.ClusterSet, error) {
	var list v1alpha2.ClusterSetList
	if err := p.local.List(ctx, &list, client.InNamespace(p.namespace)); err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// connect reads the Secret once; whatever becomes of that later is not noticed.
func (p *peer) connect(ctx context.Context, set *v1alpha2.ClusterSet) (*connection, error) {
	leader := set.Spec.Leaders[0]
	secret := &corev1.Secret{}
	if err := p.local.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: leader.Secret}, secret); err != nil {
		return nil, err
	}
	config := &rest.Config{Host: leader.Server, BearerToken: string(secret.Data["token"]), TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data["ca.crt"]}}
	config.UserAgent = "legacypeer"
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, err
	}
	return &connection{Client: c, access: accessOf(set), id: set.Spec.ClusterID, area: set.Spec.Namespace, set: set.Name, leaderID: leader.ClusterID}, nil
}

func (c *connection) announce(ctx context.Context) error {
	announce := &v1alpha1.MemberClusterAnnounce{}
	key := client.ObjectKey{Namespace: c.area, Name: identity.AnnounceName(c.id)}
	err := c.Get(ctx, key, announce)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	announce.ClusterID, announce.ClusterSetID, announce.LeaderClusterID = c.id, c.set, c.leaderID
	if err != nil {
		announce.Namespace, announce.Name = key.Namespace, key.Name
		return c.Create(ctx, announce)
	}
	metav1.SetMetaDataAnnotation(&announce.ObjectMeta, v1alpha1.AnnotationTouch, time.Now().Format(time.RFC3339))
	return c.Update(ctx, announce)
}

// report is the member's own word (MEM-CS-6), which stays when the heart stops.
func (p *peer) report(ctx context.Context, set *v1alpha2.ClusterSet, failure error) error {
	condition := v1alpha1.ClusterSetCondition{Type: v1alpha1.ClusterSetReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
	if failure != nil {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, "Disconnected", "disconnected"
	}
	if before := set.Status.Conditions; len(before) > 0 && before[0].Status == condition.Status {
		return nil
	}
	set.Status.Conditions = []v1alpha1.ClusterSetCondition{condition}
	return p.local.Status().Update(ctx, set)
}
