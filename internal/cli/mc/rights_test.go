package mc

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/lab"
)

// kubeconfigOf is a kubeconfig in which somebody else is logged in.
func kubeconfigOf(t *testing.T, hub *lab.Cluster, user string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(hub.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, auth := range config.AuthInfos {
		auth.Impersonate = user
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "kubeconfig-"+user, text)
}

// Whoever may nothing is told by every verb which right is missing first, and
// what to do about it.
func TestEveryVerbNamesTheMissingRight(t *testing.T) {
	_, hub := cluster(t)
	nobody := kubeconfigOf(t, hub, "nobody")
	for line, right := range map[string]exit.Right{
		"init -n area --clusterset fleet --clusterid hub": {Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io", Namespace: "area"},
		"create membertoken t -n area --cluster-id east":  {Verb: "list", Resource: "serviceaccounts", Namespace: "area"},
		"delete membertoken t -n area":                    {Verb: "list", Resource: "secrets", Namespace: "area"},
		"destroy -n area --clusterset fleet":              {Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io", Namespace: "area"},
		"leave --clusterset fleet":                        {Verb: "get", Resource: "clustersets.multicluster.crd.antrea.io", Namespace: "kube-system"},
		"accept-leader --clusterset fleet":                {Verb: "get", Resource: "clustersets.multicluster.crd.antrea.io", Namespace: "kube-system"},
		"export cart -n shop":                             {Verb: "get", Resource: "services", Namespace: "shop"},
		"unexport cart -n shop":                           {Verb: "get", Resource: "serviceexports.multicluster.x-k8s.io", Namespace: "shop"},
		"rotate-token t -n area -o /dev/null":             {Verb: "get", Resource: "serviceaccounts", Namespace: "area"},
		"get clusterset -A":                               {Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io"},
		"get resourceexport -n area":                      {Verb: "list", Resource: "resourceexports.multicluster.crd.antrea.io", Namespace: "area"},
		"get resourceimport x -n area":                    {Verb: "list", Resource: "resourceimports.multicluster.crd.antrea.io", Namespace: "area"},
		"status":                                          {Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io"},
		"status -o json":                                  {Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io"},
		"preflight":                                       {Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io"},
		"rename east-1 --to east1":                        {Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io"},
		"migrate-legacy --dry-run":                        {Verb: "get", Resource: "customresourcedefinitions.apiextensions.k8s.io"},
		"get membertoken -n area":                         {Verb: "list", Resource: "secrets", Namespace: "area"},
		"get joinconfig -n area --allow-loopback":         {Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io", Namespace: "area"},
		"deploy leadercluster -n area":                    {Verb: "get", Resource: "deployments.apps", Namespace: "area"},
		"undeploy membercluster -n area":                  {Verb: "get", Resource: "deployments.apps", Namespace: "area"},
		"join --clusterset fleet --clusterid east --leader-clusterid hub --leader-namespace area --leader-apiserver https://hub.example --token-secret-name t": {
			Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io", Namespace: "kube-system"},
	} {
		t.Run(line, func(t *testing.T) {
			_, _, err := command(t, nil, append(strings.Fields(line), "--kubeconfig", nobody)...)
			wantError(t, err, exit.Failed, "have the right to "+right.String()+" granted", `"nobody"`)
			report := exit.NewReport(err)
			if report.Right == nil {
				t.Fatal("the report names no right")
			}
			same(t, right, *report.Right)
		})
	}
}

// A page that lacks something names the right for it, to programs too; one that
// has nothing at all is no page.
func TestStatusNamesTheMissingRight(t *testing.T) {
	c, hub := cluster(t)
	area := leads(t, c)
	problems := func(user string) (rights []exit.Right, err error) {
		out, _, err := command(t, nil, "status", "-o", "json", "--kubeconfig", kubeconfigOf(t, hub, user))
		var page struct {
			Problems []struct {
				ClusterSet, Next string
				Right            *exit.Right
			}
		}
		if broken := json.Unmarshal([]byte(out), &page); broken != nil {
			t.Fatalf("%v: %s", broken, out)
		}
		for _, p := range page.Problems {
			if p.ClusterSet == "" && p.Right != nil {
				rights = append(rights, *p.Right)
				if !strings.Contains(p.Next, p.Right.String()) {
					t.Errorf("what to do does not name the right: %q", p.Next)
				}
			}
		}
		return rights, err
	}
	sets := exit.Right{Verb: "list", Resource: "clustersets.multicluster.crd.antrea.io"}
	rights, err := problems("nobody")
	wantError(t, err, exit.Failed, "no cluster could be read", sets.String())
	same(t, []exit.Right{sets}, rights)

	create(t, c,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "see-sets"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"multicluster.crd.antrea.io"}, Resources: []string{"clustersets"}, Verbs: []string{"list"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "see-sets"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "see-sets"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewer"}}})
	missed := exit.Right{Verb: "list", Resource: "memberclusterannounces.multicluster.crd.antrea.io", Namespace: area}
	eventuallyTrue(t, "the rest of the page is shown, and what it lacks", func() bool {
		rights, err := problems("viewer")
		return err == nil && slices.Contains(rights, missed) && !slices.Contains(rights, sets)
	})
	_, _, err = command(t, nil, "status", "--exit-code", "--kubeconfig", kubeconfigOf(t, hub, "viewer"))
	wantError(t, err, exit.Refused, "problems")
}

// Whoever may export Services need not be allowed to read the ClusterSet.
func TestExportWithTheRightsOfAUser(t *testing.T) {
	c, hub := cluster(t)
	ns := in(aService(t, c))
	create(t, c,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "export"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}},
			{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"serviceexports"}, Verbs: []string{"get", "create"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "export"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "export"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "dev"}}})
	dev := kubeconfigOf(t, hub, "dev")
	eventuallyTrue(t, "the rights are known", func() bool {
		out, _, err := command(t, nil, "export", "cart", "-n", ns, "--wait", "0", "--kubeconfig", dev)
		return err == nil && strings.HasPrefix(out, "serviceexport/cart ")
	})
	get(t, c, ns, "cart", &mcsv1beta1.ServiceExport{})
	_, _, err := command(t, nil, "unexport", "cart", "-n", ns, "--kubeconfig", dev)
	wantError(t, err, exit.Failed, `delete serviceexports.multicluster.x-k8s.io in Namespace "`+ns+`"`)
}

// A quota forbids as well, and no right would help.
func TestForbiddenByAdmissionIsNoMissingRight(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "quota")
	create(t, c, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"secrets": quantity.MustParse("0")}}})
	careful := careful(c)
	var err error
	eventuallyTrue(t, "the quota is in force", func() bool {
		secret := newSecret(ns, "s")
		if err = careful.Create(t.Context(), secret); err == nil {
			return c.Delete(t.Context(), secret) != nil
		}
		return true
	})
	var lacking *missingRight
	if errors.As(err, &lacking) || !strings.Contains(err.Error(), "quota") {
		t.Errorf("%v", err)
	}
}

// An export in a cluster that is no member goes nowhere, and says so beforehand.
func TestExportNeedsAMembership(t *testing.T) {
	c, hub := cluster(t)
	ns := in(aService(t, c))
	_, _, err := command(t, hub, "export", "cart", "-n", ns)
	wantError(t, err, exit.Failed, "no member of a ClusterSet", "mc join", "--wait 0")
	hasExport(t, c, ns, false)
}

// What the leader refuses is told with its words, and the export stays.
func TestExportTellsWhatTheConditionsSay(t *testing.T) {
	c, _ := cluster(t)
	joined := eastJoins(t, c)
	if _, err := Join(t.Context(), c, joined); err != nil {
		t.Fatal(err)
	}
	for name, told := range map[string]struct {
		reason, message string
		code            int
	}{
		"refused":  {"Failed", "the ports contradict each other", exit.Refused},
		"not seen": {"Pending", "the leader has not merged the export yet", exit.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			ns := in(aService(t, c))
			opts := ExportOptions{Namespace: ns, Name: "cart", Wait: 2 * standFirm}
			opts.Progress = func(string) { says(t, c, ns, told.reason, told.message) }
			_, err := Export(t.Context(), c, opts)
			wantError(t, err, told.code, told.message, "mc unexport cart -n "+ns)
			hasExport(t, c, ns, true)
		})
	}
}

// says writes the conditions of the export, as the member controller does.
func says(t *testing.T, c client.Client, namespace, reason, message string) {
	var export mcsv1beta1.ServiceExport
	get(t, c, namespace, "cart", &export)
	if len(export.Status.Conditions) > 0 {
		return
	}
	for _, condition := range []metav1.Condition{
		{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Valid"},
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: message},
	} {
		condition.ObservedGeneration, condition.LastTransitionTime = export.Generation, metav1.Now()
		export.Status.Conditions = append(export.Status.Conditions, condition)
	}
	if err := c.Status().Update(t.Context(), &export); err != nil {
		t.Error(err)
	}
}
