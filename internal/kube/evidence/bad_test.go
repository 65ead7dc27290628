package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// A member that is away leaves gaps that weigh, and nothing else is lost.
func TestAMemberThatIsAwayIsMissed(t *testing.T) {
	w := newWorld(t)
	all := w.clusters(t)
	for name, away := range map[string]evidence.Cluster{
		"nobody listens":                {Context: "east", Client: clientOf(t, nobodyListens(w.east.config)), Config: nobodyListens(w.east.config)},
		"the context cannot be used":    {Context: "east", Failure: errors.New("no credentials")},
		"a context of another name":     {Context: "kind-east", Failure: errors.New("no credentials")},
		"nobody named a context for it": {},
	} {
		t.Run(name, func(t *testing.T) {
			contexts := []evidence.Cluster{all[0], all[2]}
			if away.Context != "" {
				contexts = append(contexts, away)
			}
			read, err := evidence.Read(t.Context(), contexts, evidence.Options{Limit: patience})
			if err != nil {
				t.Fatal(err)
			}
			findings := preflight.Run(read.Evidence)
			for _, f := range findings {
				if !f.Unknown || f.Cluster != "east" && f.Cluster != "kind-east" {
					t.Errorf("%s of %q: %s", f.Rule, f.Cluster, f.Message)
				}
			}
			if heaviest, _ := rule.Heaviest(findings); heaviest != rule.Refuse {
				t.Errorf("it weighs %s", heaviest)
			}
		})
	}
}

func nobodyListens(config *rest.Config) *rest.Config {
	gone := rest.CopyConfig(config)
	gone.Host, gone.Timeout = "https://127.0.0.1:1", 5*time.Second
	return gone
}

// A right that is missing is named by each finding that misses what it would show.
func TestAMissingRightIsNamed(t *testing.T) {
	w := newWorld(t)
	all := w.clusters(t)
	for i := range all {
		config := rest.CopyConfig(all[i].Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "somebody"}
		limited := clientOf(t, config)
		all[i].Client, all[i].Config = limited, config
	}
	read, err := evidence.Read(t.Context(), all, evidence.Options{Limit: patience})
	if err != nil {
		t.Fatal(err) // nobody knows who leads, which is no mistake of the contexts
	}
	findings := preflight.Run(read.Evidence)
	if len(findings) == 0 {
		t.Error("nothing is missed")
	}
	for _, f := range findings {
		if !f.Unknown {
			t.Errorf("%s knows %q", f.Rule, f.Message)
		}
	}
	named := slices.ContainsFunc(findings, func(f rule.Finding) bool {
		return f.Cluster == "east" && strings.Contains(strings.Join(f.Evidence, " "), `User "somebody" cannot list resource "clustersets"`)
	})
	if !named {
		t.Errorf("nobody names the right: %+v", findings)
	}
}

// Only the Secrets of the common area may not be read: what does not need them is
// decided all the same.
func TestOneMissingRightIsOneGap(t *testing.T) {
	w := newWorld(t)
	read := w.read(t)
	read.Leader.Secrets = rule.Unreadable[[]string]("secrets is forbidden")
	var rules []string
	for _, f := range preflight.Run(read.Evidence) {
		rules = append(rules, f.Rule)
	}
	if fmt.Sprint(rules) != "[UPG-CHK-4]" {
		t.Errorf("missed by %v", rules)
	}
}

func TestContextsThatMakeNoClusterSet(t *testing.T) {
	w := newWorld(t)
	all := w.clusters(t)
	twice := all[1]
	twice.Context = "east-again"
	for name, c := range map[string]struct {
		contexts []evidence.Cluster
		named    string
		words    []string
	}{
		"one cluster under two contexts": {append(slices.Clone(all), twice), "", []string{`"east" and "east-again"`, "same cluster"}},
		"a ClusterSet that nobody has":   {all[:1], "other", []string{`"leader"`, `"other"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evidence.Read(t.Context(), c.contexts, evidence.Options{Limit: patience, ClusterSet: c.named})
			if refusal.In(err) == nil {
				t.Fatalf("was not refused: %v", err)
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("does not say %q: %v", word, err)
				}
			}
		})
	}
}

// CRDs of a release that is newer than this program are told as such.
func TestCRDsOfANewerRelease(t *testing.T) {
	w := newWorld(t)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clustersets.multicluster.crd.antrea.io"}}
	var before []apiextensionsv1.CustomResourceDefinitionVersion
	change(t, w.east, crd, func(crd *apiextensionsv1.CustomResourceDefinition) {
		before = slices.Clone(crd.Spec.Versions)
		next := *crd.Spec.Versions[len(crd.Spec.Versions)-1].DeepCopy()
		next.Name, next.Storage, next.Served = "v1", true, true
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Served, crd.Spec.Versions[i].Storage = false, false
		}
		crd.Spec.Versions = append(crd.Spec.Versions, next)
	})
	t.Cleanup(func() {
		restored := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
		w.east.await(t, "the CRD is as it was", func() bool {
			if w.east.Get(context.Background(), client.ObjectKeyFromObject(restored), restored) != nil {
				return false
			}
			restored.Status.StoredVersions = []string{"v1alpha2"}
			_ = w.east.Status().Update(context.Background(), restored)
			restored.Spec.Versions = before
			return w.east.Update(context.Background(), restored) == nil
		})
	})
	w.east.await(t, "the newer CRD is told", func() bool {
		for _, f := range preflight.Run(w.read(t).Evidence) {
			if f.Cluster == "east" && f.Unknown && strings.Contains(strings.Join(f.Evidence, " "), "serves ClusterSet as v1, and this program knows v1alpha2") {
				return true
			}
		}
		return false
	})
}

// No token and no content of a Secret is among what was read.
func TestNoSecretIsKept(t *testing.T) {
	w := newWorld(t)
	text := fmt.Sprintf("%+v", w.read(t))
	for id, token := range w.tokens {
		if strings.Contains(text, token) || strings.Contains(text, token[len(token)-40:]) {
			t.Errorf("the token of %q is in the evidence", id)
		}
	}
	if !strings.Contains(text, "east-token") {
		t.Error("the dump does not show what was read")
	}
}
