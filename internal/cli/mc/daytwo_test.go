package mc

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

// typed runs a command against the contexts of this world, and checks that no
// token is told.
func (w *world) typed(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	out, errOut, err = command(t, nil, append(args, "--kubeconfig", w.lab.Kubeconfig())...)
	if strings.Contains(out+errOut, "eyJ") {
		t.Errorf("%v printed a token", args)
	}
	return out, errOut, err
}

func (w *world) must(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, err := w.typed(t, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errOut)
	}
	return out
}

// eventuallyTrue is for what a test cannot watch.
func eventuallyTrue(t *testing.T, what string, check func() bool) {
	t.Helper()
	err := until(t.Context(), testTime, func(context.Context) (bool, error) { return check(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func service(namespace, name string, tune ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	for _, change := range tune {
		change(s)
	}
	return s
}

// exports shares a Service of east with hub, which takes part as "north", and
// ends that again.
func (w *world) exports(t *testing.T) {
	for _, ns := range []string{"shop", "attic"} {
		create(t, w.east, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	create(t, w.hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	create(t, w.east, service("shop", "cart"), service("attic", "chest"),
		service("shop", "outside", func(s *corev1.Service) {
			s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
		}))
	north, err := CreateMemberToken(t.Context(), w.hub, MemberTokenOptions{Namespace: v1alpha1.DefaultLeaderNamespace, Name: "north-token", ClusterID: "north"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), w.hub, w.joinOptions("north", north.Secret)); err != nil {
		t.Fatal(err)
	}

	for name, bad := range map[string]struct {
		args  []string
		words []string
	}{
		"no Service":            {[]string{"nothing", "-n", "shop"}, []string{`"shop/nothing"`, "does not exist", "MEM-SE-2"}},
		"ExternalName":          {[]string{"outside", "-n", "shop"}, []string{"ExternalName", "MEM-SE-2"}},
		"a Service of the kube": {[]string{"kube-dns", "-n", "kube-system"}, []string{"belongs to Kubernetes", "WK-33"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := w.typed(t, append([]string{"export", "--context", "east"}, bad.args...)...)
			wantError(t, err, exit.Refused, bad.words...)
		})
	}
	_, _, err = w.typed(t, "export", "cart", "-n", "shop", "--context", "east", "--importers", "east")
	wantError(t, err, exit.Usage, "one API server")

	t.Run("export, and export again", func(t *testing.T) {
		first := w.must(t, "export", "svc/cart", "-n", "shop", "--context", "east", "--importers", "hub")
		rows := strings.Split(strings.TrimSpace(first), "\n")
		if len(rows) != 3 || rows[0] != "serviceexport/cart created" ||
			!strings.HasPrefix(rows[1], "serviceimport/cart imported (this cluster: ") || !strings.HasPrefix(rows[2], "serviceimport/cart imported (hub: ") {
			t.Error(first)
		}
		same(t, strings.Replace(first, "created", "unchanged", 1), w.must(t, "export", "cart", "-n", "shop", "--context", "east", "--importers", "hub"))
		var export mcsv1beta1.ServiceExport
		get(t, w.east, "shop", "cart", &export)
		same(t, "true", export.Annotations[v1alpha1.AnnotationCreatedByCLI])
	})
	t.Run("what was imported", func(t *testing.T) {
		_, _, err := w.typed(t, "export", "antrea-mc-cart", "-n", "shop", "--context", "hub")
		wantError(t, err, exit.Refused, "itself imported", "MEM-SE-2")
	})
	t.Run("an importer without the Namespace is told", func(t *testing.T) {
		out := w.must(t, "export", "chest", "-n", "attic", "--context", "east", "--importers", "hub")
		if !strings.Contains(out, `serviceimport/chest awaited (hub: it has no Namespace "attic")`) {
			t.Error(out)
		}
		w.must(t, "unexport", "chest", "-n", "attic", "--context", "east")
	})
	t.Run("unexport, and unexport again", func(t *testing.T) {
		args := []string{"unexport", "cart", "-n", "shop", "--context", "east", "--importers", "hub"}
		same(t, "serviceexport/cart deleted\nserviceimport/cart withdrawn (this cluster)\nserviceimport/cart withdrawn (hub)\n", w.must(t, args...))
		same(t, "serviceexport/cart not found\nserviceimport/cart not found (this cluster)\nserviceimport/cart not found (hub)\n", w.must(t, args...))
		same(t, "serviceexport/nothing not found\nserviceimport/nothing not found (this cluster)\n", w.must(t, "unexport", "nothing", "-n", "shop", "--context", "east"))
		absent(t, w.hub, "shop", "cart", &mcsv1beta1.ServiceImport{})
	})
	if _, err := Leave(t.Context(), w.hub, LeaveOptions{Namespace: v1alpha1.DefaultMemberNamespace, ClusterSet: "fleet", Wait: testTime}); err != nil {
		t.Fatal(err)
	}
	if _, err := DeleteMemberToken(t.Context(), w.hub, DeleteMemberTokenOptions{Namespace: v1alpha1.DefaultLeaderNamespace, Name: "north-token"}); err != nil {
		t.Fatal(err)
	}
}

// rotates gives east a new token and returns it.
func (w *world) rotates(t *testing.T, old *corev1.Secret) *corev1.Secret {
	const common = v1alpha1.DefaultLeaderNamespace
	for name, bad := range map[string]struct {
		args  []string
		code  int
		words []string
	}{
		"no such token":            {[]string{"nothing", "--member-context", "east"}, exit.Failed, []string{"no ServiceAccount", "mc get membertoken"}},
		"bound to nobody":          {[]string{"default", "--member-context", "east"}, exit.Refused, []string{"bound to no cluster"}},
		"two contexts, one server": {[]string{"east-token", "--member-context", "hub"}, exit.Refused, []string{`context "hub"`, "holds no membership"}},
		"no such context":          {[]string{"east-token", "--member-context", "eest"}, exit.Failed, []string{`did you mean "east"?`}},
		"another member's place":   {[]string{"east-token", "--member-context", "east", "--member-namespace", "default"}, exit.Refused, []string{"holds no membership"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := w.typed(t, append([]string{"rotate-token", "-n", common, "--context", "hub"}, bad.args...)...)
			wantError(t, err, bad.code, bad.words...)
		})
	}
	rotate := []string{"rotate-token", "east-token", "-n", common, "--context", "hub", "--member-context", "east"}
	out := w.must(t, rotate...)
	rotation, err := readRotation(t.Context(), w.hub, common, "east-token")
	if err != nil {
		t.Fatal(err)
	}
	now := rotation.Token()
	same(t, "secret/"+now.Name+" created\nsecret/east-token configured (east)\nsecret/east-token deleted\n", out)
	if len(rotation.Old) != 1 || string(now.Data["token"]) == string(old.Data["token"]) {
		t.Fatalf("%d tokens are left", len(rotation.Old))
	}
	var member corev1.Secret
	get(t, w.east, v1alpha1.DefaultMemberNamespace, "east-token", &member)
	same(t, now.Data, member.Data)
	w.isCutOff(t, string(old.Data["token"]))

	t.Run("the token goes by its name as before", func(t *testing.T) {
		same(t, "serviceaccount/east-token unchanged\nrolebinding/east-token unchanged\nsecret/"+now.Name+" unchanged\n",
			w.must(t, "create", "membertoken", "east-token", "-n", common, "--cluster-id", "east", "--context", "hub"))
		same(t, [][]string{{"NAMESPACE", "NAME"}, {common, "east-token"}}, cells(w.must(t, "get", "membertoken", "east-token", "-n", common, "--context", "hub")))
		file, err := JoinConfig(t.Context(), w.hub, JoinConfigOptions{Namespace: common, LeaderAPIServer: w.hub.server, AllowLoopback: true, MemberToken: "east-token"})
		if err != nil || !strings.Contains(string(file), "name: east-token\n") {
			t.Errorf("%v", err)
		}
	})
	t.Run("somebody else carries it", func(t *testing.T) { w.carried(t) })
	last, err := readRotation(t.Context(), w.hub, common, "east-token")
	if err != nil {
		t.Fatal(err)
	}
	token := last.Token().DeepCopy()
	token.Name = "east-token"
	return token
}

// isCutOff waits until the leader's API server has forgotten that it knew a token.
func (w *world) isCutOff(t *testing.T, token string) {
	t.Helper()
	config := rest.AnonymousClientConfig(labtest.Cluster(t, w.lab, "hub").RESTConfig())
	config.BearerToken = token
	as, err := client.New(config, client.Options{Scheme: scheme.New(), Mapper: w.hub.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "the old token is refused", func() bool {
		err := as.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.DefaultLeaderNamespace, Name: "member-announce-from-east"}, &v1alpha1.MemberClusterAnnounce{})
		return apierrors.IsUnauthorized(err)
	})
}

// carried is a rotation without access to the member: the command runs out of
// time, the file is applied, and the command continues.
func (w *world) carried(t *testing.T) {
	path := t.TempDir() + "/east.yaml"
	args := []string{"rotate-token", "east-token", "-n", v1alpha1.DefaultLeaderNamespace, "--context", "hub", "-o", path}
	_, _, err := w.typed(t, append(args, "--wait", "1s")...)
	wantError(t, err, exit.Waiting, "has not used the new token", "every old one is valid", "repeat")
	if out := w.must(t, "status", "--contexts", "hub,east"); !strings.Contains(out, "1/1") {
		t.Error(out)
	}
	token, err := joinFlags{tokenFile: path}.options()
	if err != nil {
		t.Fatal(err)
	}
	east := w.joinOptions("east", token.Token)
	if _, err := Join(t.Context(), w.east, east); err != nil {
		t.Fatal(err)
	}
	out := w.must(t, args...)
	if !strings.HasSuffix(out, " deleted\n") || !strings.Contains(out, " unchanged\n") {
		t.Error(out)
	}
}
