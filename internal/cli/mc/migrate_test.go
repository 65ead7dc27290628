package mc

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	manifests "github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

// old is a cluster whose ClusterSets were made before v1.13 and whose CRDs were
// upgraded since.
type old struct {
	client.Client
	cluster *lab.Cluster
	config  *rest.Config
	area    string
}

func newOld(t *testing.T) old {
	t.Helper()
	cluster := labtest.Cluster(t, labtest.Start(t, labtest.Options{Clusters: []string{"old"}}), "old")
	config := cluster.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	o := old{cluster: cluster, config: config, area: v1alpha1.DefaultLeaderNamespace}
	o.connect(t)
	crd := o.crd(t)
	today := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == "v1alpha1"
	}
	create(t, o, crd)
	awaitEstablished(t, o, crd.Name)
	o.connect(t)
	namespaceNamed(t, o, o.area)
	o.set(t, o.area, map[string]any{
		"leaders": []any{map[string]any{"clusterID": "hub"}},
		"members": []any{map[string]any{"clusterID": "east"}},
	})
	o.set(t, v1alpha1.DefaultMemberNamespace, map[string]any{
		"leaders":   []any{map[string]any{"clusterID": "hub", "server": o.config.Host, "secret": "leader-token"}},
		"namespace": o.area,
	})
	eventuallyTrue(t, "the CRDs are upgraded", func() bool {
		var now apiextensionsv1.CustomResourceDefinition
		if o.Get(t.Context(), client.ObjectKeyFromObject(crd), &now) != nil {
			return false
		}
		now.Spec = today.Spec
		return o.Update(t.Context(), &now) == nil
	})
	claims, err := manifests.LegacyCRDs()
	if err != nil {
		t.Fatal(err)
	}
	create(t, o, claims[0])
	awaitEstablished(t, o, claims[0].GetName())
	rest, err := manifests.CRDs(manifests.Leader)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range rest {
		if object.GetName() != crd.Name {
			create(t, o, object)
			awaitEstablished(t, o, object.GetName())
		}
	}
	o.connect(t)
	o.claim(t, o.area, v1alpha2.ClaimClusterID, "hub")
	o.claim(t, o.area, v1alpha2.ClaimClusterSetID, "fleet")
	return o
}

// connect makes a client that knows the kinds there are now.
func (o *old) connect(t *testing.T) {
	t.Helper()
	c, err := client.New(o.config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	o.Client = c
}

func (o *old) crd(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := manifests.CRDs(manifests.Leader)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return u.GetName() == clusterSetCRD })
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all[i].Object, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func (o *old) set(t *testing.T, namespace string, spec map[string]any) {
	t.Helper()
	set := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	set.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterSet"))
	set.SetNamespace(namespace)
	set.SetName("fleet")
	eventuallyTrue(t, "ClusterSets of v1alpha1 are taken", func() bool { return o.Create(t.Context(), set.DeepCopy()) == nil })
}

func (o *old) claim(t *testing.T, namespace, name, value string) {
	t.Helper()
	create(t, o, &v1alpha2.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Value: value})
}

func (o *old) stored(t *testing.T) []string {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	get(t, o, "", clusterSetCRD, &crd)
	return crd.Status.StoredVersions
}

func (o *old) id(t *testing.T, namespace string) string {
	t.Helper()
	var set v1alpha2.ClusterSet
	get(t, o, namespace, "fleet", &set)
	return set.Spec.ClusterID
}

// legacyFindings are what the rules about old versions find here.
func (o *old) legacyFindings(t *testing.T) []string {
	t.Helper()
	o.connect(t)
	read, err := evidence.Read(t.Context(), []evidence.Cluster{{Context: "old", Client: o, Config: o.config}}, evidence.Options{Limit: testTime})
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, f := range NewPreflightReport(read, "UPG-CHK-9", "UPG-CHK-10", "UPG-CHK-11").Findings {
		found = append(found, f.Rule)
	}
	return slices.Compact(found)
}

func namespaceNamed(t *testing.T, c client.Client, name string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("Namespace")
	object.SetName(name)
	create(t, c, object)
}

// What is left of before v1.13 is found, shown, and then converted, once.
//
// covers: API-LEG-2, API-LEG-3
func TestMigrateLegacy(t *testing.T) {
	o := newOld(t)
	same(t, []string{"UPG-CHK-9", "UPG-CHK-11"}, o.legacyFindings(t))

	t.Run("nothing is changed where an ID would have to be invented", func(t *testing.T) {
		_, _, err := command(t, o.cluster, "migrate-legacy", "--yes")
		wantError(t, err, exit.Refused, "UPG-CHK-9", "--cluster-id", v1alpha1.DefaultMemberNamespace)
		same(t, "", o.id(t, o.area))
	})
	t.Run("an ID that is named is for what has no claim", func(t *testing.T) {
		out, _, err := command(t, o.cluster, "migrate-legacy", "--dry-run", "--cluster-id", "orient")
		if err != nil || strings.Count(out, `+ spec.clusterID: "orient"`) != 1 || strings.Count(out, `+ spec.clusterID: "hub"`) != 1 {
			t.Errorf("%v\n%s", err, out)
		}
	})
	o.claim(t, v1alpha1.DefaultMemberNamespace, v1alpha2.ClaimClusterID, "hub")
	t.Run("nor where the name would become another ID", func(t *testing.T) {
		wrong := &v1alpha2.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultMemberNamespace, Name: v1alpha2.ClaimClusterSetID}, Value: "flotte"}
		create(t, o, wrong)
		_, _, err := command(t, o.cluster, "migrate-legacy", "--yes")
		wantError(t, err, exit.Refused, "UPG-CHK-10", "flotte")
		if out, _, err := command(t, o.cluster, "migrate-legacy", "--dry-run", "--accept-names"); err != nil || !strings.Contains(out, "to be configured") {
			t.Errorf("%v\n%s", err, out)
		}
		if err := o.Delete(t.Context(), wrong); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a dry run changes nothing", func(t *testing.T) {
		out, _, err := command(t, o.cluster, "migrate-legacy", "--dry-run", "--delete-claims")
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`+ spec.clusterID: "hub"`, "clustersets.multicluster.crd.antrea.io to be configured", "clusterclaims.multicluster.crd.antrea.io to be deleted"} {
			if !strings.Contains(out, part) {
				t.Errorf("does not say %q:\n%s", part, out)
			}
		}
		same(t, "", o.id(t, o.area))
		same(t, []string{"v1alpha1", "v1alpha2"}, o.stored(t))
	})
	t.Run("it is told in each format", func(t *testing.T) {
		want := []string{"clusterset/fleet to be configured", "clusterset/fleet to be configured", "customresourcedefinition/" + clusterSetCRD + " to be configured"}
		for _, format := range []string{"json", "yaml", "name"} {
			out, _, err := command(t, o.cluster, "migrate-legacy", "--dry-run", "-o", format)
			if err != nil {
				t.Fatal(err)
			}
			toldIn(t, format, out, want...)
		}
	})
	t.Run("nobody said yes", func(t *testing.T) {
		_, errOut, err := command(t, o.cluster, "migrate-legacy")
		wantError(t, err, exit.Usage, "--yes")
		if !strings.Contains(errOut, `+ spec.clusterID: "hub"`) {
			t.Errorf("the difference was not shown:\n%s", errOut)
		}
		same(t, "", o.id(t, o.area))
	})
	t.Run("it is converted", func(t *testing.T) {
		out, _, err := command(t, o.cluster, "migrate-legacy", "--yes", "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var told struct{ Objects []Touched }
		if err := json.Unmarshal([]byte(out), &told); err != nil || len(told.Objects) != 3 {
			t.Errorf("%v\n%s", err, out)
		}
		same(t, "hub", o.id(t, o.area))
		same(t, "hub", o.id(t, v1alpha1.DefaultMemberNamespace))
		same(t, []string{"v1alpha2"}, o.stored(t))
		same(t, []string{"UPG-CHK-9"}, o.legacyFindings(t)) // the kind is still served
	})
	t.Run("again is nothing", func(t *testing.T) {
		out, errOut, err := command(t, o.cluster, "migrate-legacy")
		if err != nil || out != "" || !strings.Contains(errOut, "nothing is left") {
			t.Errorf("%v\n%s%s", err, out, errOut)
		}
	})
	t.Run("claims go when they are to go", func(t *testing.T) {
		out, _, err := command(t, o.cluster, "migrate-legacy", "--delete-claims", "--yes")
		if err != nil || !strings.Contains(out, "clusterclaims.multicluster.crd.antrea.io deleted") {
			t.Fatalf("%v\n%s", err, out)
		}
		eventuallyTrue(t, "the kind is gone", func() bool {
			o.connect(t)
			return meta.IsNoMatchError(o.List(t.Context(), &v1alpha2.ClusterClaimList{}))
		})
		same(t, []string{}, o.legacyFindings(t))
	})
}

// A conversion that is stopped at its first write, then at its second and so on,
// leaves each object as it was or as it should be; the last run completes it.
func TestMigrateLegacyCanBeInterruptedAtEveryWrite(t *testing.T) {
	o := newOld(t)
	o.claim(t, v1alpha1.DefaultMemberNamespace, v1alpha2.ClaimClusterID, "hub")
	at := 1
	for ; at < 20; at++ {
		ctx, interrupt := context.WithCancel(t.Context())
		s := &stopper{at: at, interrupt: interrupt}
		_, err := MigrateLegacy(ctx, s.through(t, o.cluster), MigrateLegacyOptions{DeleteClaims: true})
		interrupt()
		if err == nil {
			break
		}
		wantError(t, err, exit.Failed, "repeat the command")
		if s.total() != at {
			t.Errorf("it was interrupted at write %d, and wrote %d times", at, s.total())
		}
		ids := []string{o.id(t, o.area), o.id(t, v1alpha1.DefaultMemberNamespace)}
		for _, id := range ids {
			if id != "" && id != "hub" {
				t.Errorf("after write %d the IDs are %q", at, ids)
			}
		}
		if slices.Contains(ids, "") && !slices.Contains(o.stored(t), "v1alpha1") {
			t.Errorf("after write %d the CRD forgets what is stored: IDs %q, stored %q", at, ids, o.stored(t))
		}
	}
	if at < 3 {
		t.Errorf("it was interrupted %d times only", at-1)
	}
	same(t, "hub", o.id(t, o.area))
	same(t, "hub", o.id(t, v1alpha1.DefaultMemberNamespace))
	same(t, []string{"v1alpha2"}, o.stored(t))
	eventuallyTrue(t, "the kind is gone", func() bool {
		o.connect(t)
		return meta.IsNoMatchError(o.List(t.Context(), &v1alpha2.ClusterClaimList{}))
	})
}
