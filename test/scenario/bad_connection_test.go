package scenario_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// mentions tells which of the words a message lacks.
func mentions(message string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(message, word) {
			return fmt.Errorf("%q does not mention %q", message, word)
		}
	}
	return nil
}

func podAddresses(o *member.Options) { o.Mode = v1alpha1.EndpointIPTypePodIP }

// Whatever is wrong with the way to the leader is told on the ClusterSet, costs
// no import, concerns no other member, and is over when it is put right.
func TestBadConnections(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west := f.Member(t, "east", podAddresses), f.Member(t, "west")
	hub := f.Candidate(t, "leader", "hub")
	hub.Start(t)
	hub.Join(t)
	ns := namespaceOf(t, east.Cluster, west.Cluster, hub.Cluster)
	others := standsBy(t, ns, east, hub)
	west.AwaitImport(t, ns, "bystander", others.ready())

	server := func(address string) func(*v1alpha2.ClusterSet) {
		return func(s *v1alpha2.ClusterSet) { s.Spec.Leaders[0].Server = address }
	}
	clusterID := func(id string) func(*v1alpha2.ClusterSet) {
		return func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID = id }
	}
	page := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<html>It works!</html>")
	}))
	t.Cleanup(page.Close)
	good := f.Token(t, west.Cluster, west.Namespace, "leader-token", "west")
	secret := func(key string, value []byte) *corev1.Secret {
		bad := good.DeepCopy()
		if bad.Data[key] = value; value == nil {
			delete(bad.Data, key)
		}
		return bad
	}

	for name, tc := range map[string]struct {
		set    func(*v1alpha2.ClusterSet)
		secret *corev1.Secret // nil: the good one
		reason string
		says   []string
	}{
		"nobody listens there": {
			set:    server("https://127.0.0.1:1"),
			reason: clusterset.ReasonDisconnected, says: []string{"https://127.0.0.1:1", "connection refused", "check its address"},
		},
		"a server that is not Kubernetes": {
			set: server(page.URL), secret: secret("ca.crt", pemOf(page.Certificate())),
			reason: clusterset.ReasonDisconnected, says: []string{page.URL, "not answer as a Kubernetes API server", "check the leader's address"},
		},
		"another authority": {
			secret: secret("ca.crt", west.Config.CAData),
			reason: clusterset.ReasonDisconnected, says: []string{"signed by an authority that is not trusted here", "create membertoken", "another server answers"},
		},
		"an authority that is no certificate": {
			secret: secret("ca.crt", []byte("nonsense")),
			reason: clusterset.ReasonCredentialMissing, says: []string{"ca.crt", "create membertoken"},
		},
		"an expired token": {
			secret: secret("token", expired(t, f, string(good.Data["token"]))),
			reason: clusterset.ReasonUnauthorized, says: []string{"does not accept the token", "create membertoken"},
		},
		"a token of another cluster": {
			secret: secret("token", tokenOf(t, east.Cluster, ns, "default")),
			reason: clusterset.ReasonUnauthorized, says: []string{"does not accept the token", "create membertoken"},
		},
		"a token without rights": {
			secret: secret("token", tokenOf(t, f.Leader.Cluster, f.Area, "default")),
			reason: clusterset.ReasonUnauthorized, says: []string{"no rights in Namespace \"" + f.Area + "\"", "create membertoken"},
		},
		"another Namespace": {
			set:    func(s *v1alpha2.ClusterSet) { s.Spec.Namespace = "elsewhere" },
			reason: clusterset.ReasonUnauthorized, says: []string{"no rights in Namespace \"elsewhere\"", "check the Namespace"},
		},
		"a Secret without token": {
			secret: secret("token", nil),
			reason: clusterset.ReasonCredentialMissing, says: []string{`Secret "leader-token" has no "token"`, "create membertoken"},
		},
		"a token that is none": {
			secret: secret("token", []byte("to\x00ken")),
			reason: clusterset.ReasonCredentialMissing, says: []string{`Secret "leader-token" has a "token" that is no token`, "create membertoken"},
		},
		"an ID with a dot": {
			set:    clusterID("west.eu"),
			reason: clusterset.ReasonInvalid, says: []string{`"west.eu"`, "use dashes"},
		},
		"an ID too long for a label": {
			set:    clusterID(strings.Repeat("w", 64)),
			reason: clusterset.ReasonInvalid, says: []string{"63 characters"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := others.ready()
			if tc.secret != nil {
				west.Put(t, tc.secret)
			}
			if tc.set != nil {
				west.ChangeSet(t, tc.set)
			}
			awaitProblem(t, west, tc.reason, tc.says...)
			others.flows(t)
			west.AwaitImport(t, ns, "bystander", before)

			west.Put(t, good.DeepCopy())
			west.ChangeSet(t, func(s *v1alpha2.ClusterSet) { s.Spec = west.Set().Spec })
			west.AwaitReady(t)
			west.AwaitImport(t, ns, "bystander", others.ready())
		})
	}
	t.Run("the Secret is deleted", func(t *testing.T) {
		before := others.ready()
		if err := west.Delete(t.Context(), good.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		awaitProblem(t, west, clusterset.ReasonCredentialMissing, `Secret "leader-token"`, "create membertoken")
		others.flows(t)
		west.AwaitImport(t, ns, "bystander", before)
		west.Restart(t) // nor does a new process forget the imports
		awaitProblem(t, west, clusterset.ReasonCredentialMissing)
		west.AwaitImport(t, ns, "bystander", before)
		west.Put(t, good.DeepCopy())
		west.AwaitReady(t)
		west.AwaitImport(t, ns, "bystander", others.ready())
	})
	t.Run("this machine itself", func(t *testing.T) {
		west.Stop(t)
		strict := f.Candidate(t, "west", "west", func(o *member.Options) { o.AllowLoopback = false })
		strict.Start(t)
		awaitProblem(t, west, clusterset.ReasonLoopback, west.Set().Spec.Leaders[0].Server, "set spec.leaders[0].server")
		others.flows(t)
		strict.Stop(t)
	})
	west.Start(t)
	west.AwaitReady(t)
	var announces v1alpha1.MemberClusterAnnounceList
	if err := f.Leader.List(t.Context(), &announces); err != nil {
		t.Fatal(err)
	}
	for _, a := range announces.Items {
		if a.Namespace == f.Area && a.ClusterID != "east" && a.ClusterID != "west" && a.ClusterID != "hub" {
			t.Errorf("cluster ID %q has reached the leader", a.ClusterID)
		}
	}
}

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// tokenOf is a good token of a ServiceAccount.
func tokenOf(t *testing.T, c *fleet.Cluster, namespace, name string) []byte {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	fleet.Eventually(t, "a token of "+name, func() error { return c.SubResource("token").Create(t.Context(), account, request) })
	return []byte(request.Status.Token)
}

// expired is the same token with an end that is over.
func expired(t *testing.T, f *fleet.Fleet, token string) []byte {
	t.Helper()
	return []byte(f.TokenUntil(t, token, time.Now().Add(-time.Hour)))
}

// A second cluster that claims an ID is told so, and disturbs the first in
// nothing. Whose the ID is is not for it to know.
func TestClusterIDInUse(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east", podAddresses)
	hub := f.Candidate(t, "leader", "hub")
	hub.Start(t)
	hub.Join(t)
	ns := namespaceOf(t, east.Cluster, hub.Cluster)
	others := standsBy(t, ns, east, hub)
	holder, err := f.Announce(t, "east")
	if err != nil {
		t.Fatal(err)
	}

	twin := f.Candidate(t, "west", "east")
	twin.Start(t)
	twin.Request(t)
	t.Cleanup(func() { twin.Leave(t) })
	awaitProblem(t, twin, clusterset.ReasonIDInUse, `cluster ID "east"`, f.Name, "join with another ID")
	set, err := twin.ReadSet(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{string(holder.UID), holder.Annotations[v1alpha1.AnnotationClusterUID], east.Config.Host} {
		if strings.Contains(set.Status.Conditions[0].Message, secret) {
			t.Errorf("the message tells %q: %s", secret, set.Status.Conditions[0].Message)
		}
	}
	others.flows(t)
	if err := east.CheckCondition(t, "True", ""); err != nil {
		t.Error(err)
	}
	now, err := f.Announce(t, "east")
	if err != nil || now.UID != holder.UID || now.Annotations[v1alpha1.AnnotationClusterUID] != holder.Annotations[v1alpha1.AnnotationClusterUID] {
		t.Errorf("the announce was %v and is %v (%v)", holder.ObjectMeta, now.ObjectMeta, err)
	}

	// The same cluster may come again, as a new process and as a new member.
	east.Restart(t)
	others.flows(t)
	twin.Leave(t)
	if _, err := f.Announce(t, "east"); err != nil {
		t.Errorf("the twin took the announce along: %v", err)
	}
	east.Leave(t)
	east.Make(t, east.Set())
	east.AwaitReady(t)
	others.flows(t)
}

// A ClusterSet with two leaders is refused by its schema. Of two ClusterSets in
// one Namespace the younger says which one is served.
func TestTwoLeaders(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Candidate(t, "east", "east")
	set := east.Set()
	set.Spec.Leaders = append(set.Spec.Leaders, v1alpha2.LeaderCluster{ClusterID: "second", Server: "https://192.0.2.1", Secret: "second"})
	err := east.Create(t.Context(), set)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("it is created with %v", err)
	}
	if err := mentions(err.Error(), "spec.leaders", "1"); err != nil {
		t.Error(err)
	}
	set = east.Set()
	set.Spec.Leaders = nil
	if err := east.Create(t.Context(), set); !apierrors.IsInvalid(err) {
		t.Errorf("without a leader it is created with %v", err)
	}

	east.Start(t)
	east.Join(t)
	second := east.Set()
	second.Name = f.Name + "-another" // sorts later, should both be of one second
	east.Make(t, second)
	t.Cleanup(func() { east.Discard(t, second) })
	fleet.Eventually(t, "the younger says that it is not served", func() error {
		if err := east.Get(t.Context(), client.ObjectKeyFromObject(second), second); err != nil {
			return err
		}
		if c := second.Status.Conditions; len(c) == 1 && c[0].Status == "False" && c[0].Reason == clusterset.ReasonSecondClusterSet {
			return mentions(c[0].Message, f.Name, "delete one of them")
		}
		return fmt.Errorf("its conditions are %+v", second.Status.Conditions)
	})
	if err := east.CheckCondition(t, "True", ""); err != nil {
		t.Error(err)
	}
}
