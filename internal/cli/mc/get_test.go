package mc

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// command runs "mc" with these arguments, as a user does.
func command(t *testing.T, hub *lab.Cluster, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return fed(t, hub, nil, args...)
}

// fed runs "mc" with something on stdin.
func fed(t *testing.T, hub *lab.Cluster, stdin []byte, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	root := NewCommand(genericiooptions.IOStreams{In: bytes.NewReader(stdin), Out: &out, ErrOut: &errOut})
	if hub != nil {
		args = append(args, "--kubeconfig", hub.KubeconfigPath())
	}
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errOut)
	err = root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// covers: CLI-5.7
func TestGetPrintsTheSpecifiedColumns(t *testing.T) {
	c, hub := cluster(t)
	ns := namespace(t, c, "get")
	set := &v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "fleet"}, Spec: v1alpha2.ClusterSetSpec{
		ClusterID: "hub", Leaders: []v1alpha2.LeaderCluster{{ClusterID: "hub"}}}}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	of := func(id, name string) *v1alpha1.ResourceExport {
		m := meta(name)
		m.Labels = map[string]string{v1alpha1.LabelSourceClusterID: id}
		return &v1alpha1.ResourceExport{ObjectMeta: m, Spec: v1alpha1.ResourceExportSpec{ClusterID: id, Namespace: "shop", Name: "cart", Kind: "Service"}}
	}
	create(t, c, set, of("west", "west-shop-cart-service"), of("east", "east-shop-cart-service"),
		&v1alpha1.ResourceExport{ObjectMeta: meta("policy"), Spec: v1alpha1.ResourceExportSpec{Name: "p", Kind: "AntreaClusterNetworkPolicy"}},
		&v1alpha1.ResourceImport{ObjectMeta: meta("shop-cart-service"), Spec: v1alpha1.ResourceImportSpec{Namespace: "shop", Name: "cart", Kind: "ServiceImport"}},
		&corev1.Secret{ObjectMeta: meta("not-ours")},
	)
	if _, err := CreateMemberToken(t.Context(), c, eastToken(ns)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		args []string
		rows [][]string
	}{
		"a ClusterSet without status": {[]string{"clusterset"}, [][]string{
			{"CLUSTER-ID", "NAMESPACE", "CLUSTERSET-ID", "TYPE", "STATUS", "REASON"},
			{"<NONE>", ns, "fleet", "<NONE>", "<NONE>", "<NONE>"}}},
		"exports": {[]string{"re"}, [][]string{
			{"CLUSTER-ID", "NAMESPACE", "NAME", "KIND"},
			{"<NONE>", ns, "policy", "AntreaClusterNetworkPolicy"},
			{"east", ns, "east-shop-cart-service", "Service"},
			{"west", ns, "west-shop-cart-service", "Service"}}},
		"exports of one cluster": {[]string{"resourceexports", "--cluster-id", "east"}, [][]string{
			{"CLUSTER-ID", "NAMESPACE", "NAME", "KIND"},
			{"east", ns, "east-shop-cart-service", "Service"}}},
		"one import, wide": {[]string{"ri", "shop-cart-service", "-o", "wide"}, [][]string{
			{"NAMESPACE", "NAME", "KIND", "SOURCE", "IMPORTED-BY", "NOT-BY"},
			{ns, "shop-cart-service", "ServiceImport", "shop/cart", "<NONE>", "<NONE>"}}},
		"tokens": {[]string{"membertokens"}, [][]string{
			{"NAMESPACE", "NAME"},
			{ns, "east-token"}}},
		"names": {[]string{"resourceexport", "-o", "name"}, [][]string{
			{"resourceexport/east-shop-cart-service"}, {"resourceexport/policy"}, {"resourceexport/west-shop-cart-service"}}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := command(t, hub, append([]string{"get"}, append(want.args, "-n", ns)...)...)
			if err != nil {
				t.Fatal(err)
			}
			same(t, want.rows, cells(out))
		})
	}
	t.Run("one condition a row", func(t *testing.T) {
		takeUp(t, c, ns, "fleet", v1alpha1.ClusterSetStatus{ClusterStatuses: []v1alpha1.ClusterStatus{
			{ClusterID: "west", Conditions: []v1alpha1.ClusterCondition{{Type: "Ready", Status: "False", Reason: "Disconnected"}}},
			{ClusterID: "east", Conditions: []v1alpha1.ClusterCondition{{Type: "Ready", Status: "True", Reason: "Connected"}}},
		}})
		out, _, err := command(t, hub, "get", "clusterset", "fleet", "-n", ns)
		if err != nil {
			t.Fatal(err)
		}
		same(t, [][]string{
			{"CLUSTER-ID", "NAMESPACE", "CLUSTERSET-ID", "TYPE", "STATUS", "REASON"},
			{"east", ns, "fleet", "Ready", "True", "Connected"},
			{"west", ns, "fleet", "Ready", "False", "Disconnected"},
		}, cells(out))
	})
	t.Run("a token that can be imported", func(t *testing.T) {
		out, _, err := command(t, hub, "get", "membertoken", "east-token", "-n", ns, "-o", "yaml")
		if err != nil {
			t.Fatal(err)
		}
		secret, err := joinfile.ParseToken([]byte(out))
		if err != nil {
			t.Fatal(err)
		}
		same(t, corev1.SecretTypeOpaque, secret.Type)
		same(t, "", secret.Namespace)
	})
	t.Run("a list that can be applied", func(t *testing.T) {
		out, _, err := command(t, hub, "get", "re", "-n", ns, "-o", "json")
		if err != nil || !strings.Contains(out, `"kind": "List"`) || !strings.Contains(out, `"apiVersion": "multicluster.crd.antrea.io/v1alpha1"`) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func cells(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

func TestGetOfNothing(t *testing.T) {
	c, hub := cluster(t)
	ns := namespace(t, c, "get")
	out, errOut, err := command(t, hub, "get", "resourceexport", "-n", ns)
	if err != nil || out != "" || !strings.Contains(errOut, "no resourceexports in Namespace") {
		t.Errorf("stdout %q, stderr %q, %v", out, errOut, err)
	}
	_, _, err = command(t, hub, "get", "resourceexport", "x", "-n", ns)
	wantError(t, err, exit.Failed, `"x"`, ns)
	_, _, err = command(t, hub, "get", "resourceimport", "x", "-A")
	wantError(t, err, exit.Usage, "-A")
	_, _, err = command(t, hub, "get", "resourceimport", "-o", "xml")
	wantError(t, err, exit.Usage, "xml", "json")
}

func TestGetJoinConfig(t *testing.T) {
	c, hub := cluster(t)
	ns := namespace(t, c, "get")
	_, _, err := command(t, hub, "get", "joinconfig", "-n", ns, "--allow-loopback")
	wantError(t, err, exit.Failed, "no ClusterSet", "mc init")
	if _, err := Init(t.Context(), c, InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub"}); err != nil {
		t.Fatal(err)
	}
	_, _, err = command(t, hub, "get", "joinconfig", "-n", ns)
	wantError(t, err, exit.Refused, "loopback", "WK-55")
	_, _, err = command(t, hub, "get", "joinconfig", "-n", ns, "--allow-loopback", "--member-token", "nothing")
	wantError(t, err, exit.Failed, `"nothing"`, "mc create membertoken")

	if _, err := CreateMemberToken(t.Context(), c, eastToken(ns)); err != nil {
		t.Fatal(err)
	}
	out, _, err := command(t, hub, "get", "joinconfig", "-n", ns, "--leader-apiserver", "https://hub.example", "--member-token", "east-token")
	if err != nil {
		t.Fatal(err)
	}
	file, err := joinfile.Parse([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	same(t, joinfile.Config{ClusterSetID: "fleet", LeaderClusterID: "hub", LeaderNamespace: ns, LeaderAPIServer: "https://hub.example"}, file.Config)
	same(t, "east-token", file.Token.Name)
}

func TestGetInAllNamespaces(t *testing.T) {
	c, hub := cluster(t)
	one, two := leads(t, c), leads(t, c)
	create(t, c,
		&v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{Namespace: one, Name: "x"}, Spec: v1alpha1.ResourceExportSpec{Kind: "Service"}},
		&v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{Namespace: two, Name: "x"}, Spec: v1alpha1.ResourceExportSpec{Kind: "Service"}},
		&v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Namespace: one, Name: "x"}, Spec: v1alpha1.ResourceImportSpec{Kind: "ServiceImport"}},
		&v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Namespace: two, Name: "x"}, Spec: v1alpha1.ResourceImportSpec{Kind: "ServiceImport"}},
	)
	for kind, column := range map[string]int{"clusterset": 1, "resourceexport": 1, "resourceimport": 0, "membertoken": 0} {
		t.Run(kind, func(t *testing.T) {
			out, _, err := command(t, hub, "get", kind, "-A")
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, row := range cells(out) {
				if row[column] == one || row[column] == two {
					found = append(found, row[column])
				}
			}
			same(t, slices.Sorted(slices.Values([]string{one, two})), slices.Compact(slices.Sorted(slices.Values(found))))
			_, _, err = command(t, hub, "get", kind, "x", "-A")
			wantError(t, err, exit.Usage, "-A")
		})
	}
}

func TestGetAliases(t *testing.T) {
	c, hub := cluster(t)
	ns := leads(t, c)
	for kind, aliases := range map[string]string{
		"clusterset": "clustersets", "resourceexport": "resourceexports re", "resourceimport": "resourceimports ri", "membertoken": "membertokens",
	} {
		want, _, err := command(t, hub, "get", kind, "-n", ns, "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		for _, alias := range strings.Fields(aliases) {
			got, _, err := command(t, hub, "get", alias, "-n", ns, "-o", "json")
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, got)
		}
	}
}

// All verbs call a token by one name, whatever Secret it is in.
func TestATokenThatIsRotatedIsListedOnce(t *testing.T) {
	secret := func(name, account, replaces string, minute int64) client.Object {
		annotations := map[string]string{v1alpha1.AnnotationCreatedByCLI: "true"}
		if account != "" {
			annotations[corev1.ServiceAccountNameKey] = account
		}
		if replaces != "" {
			annotations[clusterset.AnnotationReplaces] = replaces
		}
		return &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
			Namespace: "area", Name: name, Annotations: annotations, CreationTimestamp: metav1.NewTime(time.Unix(60*minute, 0))}}
	}
	for name, tc := range map[string]struct {
		secrets []client.Object
		want    string
	}{
		"never rotated":       {[]client.Object{secret("east", "east", "", 0)}, "east in east"},
		"rotated":             {[]client.Object{secret("east-x1", "east", "east", 1)}, "east in east-x1"},
		"on the way":          {[]client.Object{secret("east", "east", "", 0), secret("east-x1", "east", "east", 1)}, "east in east-x1"},
		"and another":         {[]client.Object{secret("east-x1", "east", "east", 1), secret("west", "west", "", 0)}, "east in east-x1, west in west"},
		"a member's own copy": {[]client.Object{secret("east", "", "", 0)}, "east in east"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, token := range memberTokens().pick(tc.secrets) {
				row := memberTokens().rows(token)[0]
				got = append(got, row[1]+" in "+row[3])
				same(t, row[1], memberTokens().public(token).GetName())
			}
			same(t, tc.want, strings.Join(got, ", "))
		})
	}
}
