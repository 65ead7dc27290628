package upgrade_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

const area = "area-crash"

// player is a member that the test plays: all its writes go to the real API
// server of the leader, with the token that its Secret holds at that moment.
type player struct {
	id      string
	cluster *fleet.Cluster

	mu     sync.Mutex
	faults []string
	beats  int
	known  map[string]client.Client // by token
}

func (p *player) namespace() string { return "member-" + p.id }

// begin makes what a member with the shared credential has, or brings it back.
func (p *player) begin(t testing.TB, token *corev1.Secret) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace()}}
	if err := p.cluster.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if err := client.IgnoreNotFound(p.cluster.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(p.namespace()))); err != nil {
		t.Fatal(err)
	}
	p.cluster.Put(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "leader-token", Namespace: p.namespace()}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"ca.crt": token.Data["ca.crt"], "token": token.Data["token"]},
	})
	p.cluster.Put(t, &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "crash", Namespace: p.namespace()},
		Spec: v1alpha2.ClusterSetSpec{ClusterID: p.id, Namespace: area,
			Leaders: []v1alpha2.LeaderCluster{{ClusterID: "leader", Server: p.cluster.Config.Host, Secret: "leader-token"}}},
	})
	p.mu.Lock()
	p.faults, p.beats = nil, 0
	p.mu.Unlock()
}

// live beats and exports until the context ends.
func (p *player) live(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.beat(ctx); err != nil && ctx.Err() == nil {
			p.note(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// note a denial. What else fails on a busy machine is no fault of the driver, and
// before its first heartbeat a member has nothing to lose: the API server may not
// have heard yet of the account that was made anew for this run.
func (p *player) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	denied := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
	if denied && p.beats > 0 {
		p.faults = append(p.faults, err.Error())
	}
}

// beat is one heartbeat and one look at the export, with the present token.
func (p *player) beat(ctx context.Context) error {
	var set v1alpha2.ClusterSet
	if err := p.cluster.Get(ctx, client.ObjectKey{Namespace: p.namespace(), Name: "crash"}, &set); err != nil {
		return err
	}
	var secret corev1.Secret
	if err := p.cluster.Get(ctx, client.ObjectKey{Namespace: p.namespace(), Name: set.Spec.Leaders[0].Secret}, &secret); err != nil {
		return err
	}
	token := string(secret.Data["token"])
	c, err := p.as(token)
	if err != nil {
		return err
	}
	announce := &v1alpha1.MemberClusterAnnounce{ObjectMeta: metav1.ObjectMeta{Name: identity.AnnounceName(p.id), Namespace: area}}
	err = c.Get(ctx, client.ObjectKeyFromObject(announce), announce)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return err
	}
	announce.ClusterID, announce.ClusterSetID, announce.LeaderClusterID = p.id, "crash", "leader"
	for key, value := range map[string]string{
		v1alpha1.AnnotationTouch: time.Now().Format(time.RFC3339Nano), v1alpha1.AnnotationPeer: v1alpha1.PeerVersion,
		v1alpha1.AnnotationPublished: "session", v1alpha1.AnnotationCredential: clusterset.Credential(clusterset.Token(token)),
	} {
		metav1.SetMetaDataAnnotation(&announce.ObjectMeta, key, value)
	}
	if absent {
		err = c.Create(ctx, announce)
	} else {
		err = c.Update(ctx, announce)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats++
	return nil
}

// as is access with a token.
func (p *player) as(token string) (client.Client, error) {
	if c, ok := p.known[token]; ok {
		return c, nil
	}
	access := rest.AnonymousClientConfig(p.cluster.Config)
	access.BearerToken, access.QPS = token, -1
	c, err := client.New(access, client.Options{Scheme: scheme.New()})
	if err == nil {
		p.known[token] = c
	}
	return c, err
}

func (p *player) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) > 0 {
		return fmt.Errorf("member %q was denied %d times, first: %s", p.id, len(p.faults), p.faults[0])
	}
	if p.beats == 0 {
		return fmt.Errorf("member %q has not beaten", p.id)
	}
	return nil
}
