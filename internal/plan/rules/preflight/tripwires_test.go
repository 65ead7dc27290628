package preflight_test

import (
	"net/netip"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

type evidence = preflight.Evidence

// bindAs rebinds the account of east.
func bindAs(annotated bool, id string) func(*evidence) {
	return func(e *evidence) {
		edit(&e.Leader.Accounts, func(a *[]admission.Account) {
			*a = append([]admission.Account{}, *a...)
			(*a)[2].Annotated, (*a)[2].BoundID = annotated, id
		})
	}
}

// beatAgo makes the last heartbeat of east that old, by the leader's clock.
func beatAgo(age time.Duration) func(*evidence) { return touchAs(now.Add(-age).Format(time.RFC3339)) }

func touchAs(touch string) func(*evidence) {
	return announceAs(func(a *v1alpha1.MemberClusterAnnounce) { a.Annotations[v1alpha1.AnnotationTouch] = touch })
}

func announceAs(change func(*v1alpha1.MemberClusterAnnounce)) func(*evidence) {
	return func(e *evidence) {
		edit(&e.Leader.Announces, func(list *[]v1alpha1.MemberClusterAnnounce) { change(&(*list)[0]) })
	}
}

// ourPeer is a member of ours whose leader has yet to answer.
func ourPeer(a *v1alpha1.MemberClusterAnnounce) {
	a.Annotations[v1alpha1.AnnotationPeer] = v1alpha1.PeerVersion
	a.Finalizers = nil
}

func exporting(exports ...v1alpha1.ResourceExport) func(*evidence) {
	return func(e *evidence) { add(&e.Leader.Exports, exports...) }
}

func exportAs(i int, change func(*v1alpha1.ResourceExport)) func(*evidence) {
	return func(e *evidence) {
		edit(&e.Leader.Exports, func(list *[]v1alpha1.ResourceExport) { change(&(*list)[i]) })
	}
}

func leaderController(change func(*preflight.Controller)) func(*evidence) {
	return func(e *evidence) {
		edit(&e.Leader.Controllers, func(c *[]preflight.Controller) { change(&(*c)[0]) })
	}
}

func eastController(change func(*preflight.Controller)) func(*evidence) {
	return func(e *evidence) {
		edit(&e.Members[0].Controllers, func(c *[]preflight.Controller) { change(&(*c)[0]) })
	}
}

func eastSet(change func(*v1alpha2.ClusterSet)) func(*evidence) {
	return func(e *evidence) {
		edit(&e.Members[0].ClusterSets, func(s *[]v1alpha2.ClusterSet) { change(&(*s)[0]) })
	}
}

func eastCredential(change func(*preflight.Credential)) func(*evidence) {
	return func(e *evidence) { edit(&e.Members[0].Credential, change) }
}

func eastLegacy(change func(*preflight.Legacy)) func(*evidence) {
	return func(e *evidence) { edit(&e.Members[0].Legacy, change) }
}

func eastSettings(change func(*preflight.Settings)) func(*evidence) {
	return func(e *evidence) { edit(&e.Members[0].Settings, change) }
}

func eastExports(services ...string) func(*evidence) {
	return func(e *evidence) {
		for _, s := range services {
			namespace, name, _ := strings.Cut(s, "/")
			add(&e.Members[0].Exported, preflight.Exported{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
}

func both(changes ...func(*evidence)) func(*evidence) {
	return func(e *evidence) {
		for _, change := range changes {
			change(e)
		}
	}
}

// shared adds the credential that all members once had.
func shared(e *evidence) {
	add(&e.Leader.Accounts, admission.Account{Name: "antrea-mc-member-access-sa"})
	add(&e.Leader.Grants, grantOf("antrea-mc-member-cluster-rolebinding", "antrea-mc-member-access-sa"))
	add(&e.Leader.Secrets, "antrea-mc-member-access-token")
}

func upstreamAt(version string) func(*preflight.Controller) {
	return func(c *preflight.Controller) { c.Version = version }
}

func ours(c *preflight.Controller) { c.Upstream, c.Version = false, "v0.3.0" }

var tripwires = map[string][]tripwire{
	"UPG-CHK-1": {
		{"an announce whose ID nobody is bound to", bindAs(false, ""), "REFUSE east"},
		{"bound to another", bindAs(true, "north"), "REFUSE east"},
		{"a second account does no harm here", func(e *evidence) {
			add(&e.Leader.Accounts, admission.Account{Name: "x", Annotated: true, BoundID: "east"})
		}, ""},
		{"announces that cannot be read", func(e *evidence) { e.Leader.Announces = rule.Unreadable[[]v1alpha1.MemberClusterAnnounce]("forbidden") }, "UNKNOWN"},
	},
	"UPG-CHK-2": {
		{"two accounts of one ID", func(e *evidence) {
			add(&e.Leader.Accounts, admission.Account{Name: "x", Annotated: true, BoundID: "east"})
		}, "FIX east"},
		{"two accounts without an ID", func(e *evidence) { add(&e.Leader.Accounts, admission.Account{Name: "x"}, admission.Account{Name: "y"}) }, ""},
	},
	"UPG-CHK-3": {
		{"an empty annotation", func(e *evidence) { add(&e.Leader.Accounts, admission.Account{Name: "x", Annotated: true}) }, "FIX"},
		{"no annotation", func(e *evidence) { add(&e.Leader.Accounts, admission.Account{Name: "x"}) }, ""},
	},
	"UPG-CHK-4": {
		{"the shared credential, with its three objects", shared, "FIX, FIX"},
		{"one a member uses, before the leader is strict", both(shared, leaderController(upstreamAt("v2.6.1")),
			eastCredential(func(c *preflight.Credential) { c.Account = "antrea-mc-member-access-sa" })), "REFUSE, FIX"},
		{"one a member uses, under a strict leader", both(shared, eastCredential(func(c *preflight.Credential) { c.Account = "antrea-mc-member-access-sa" })), "FIX, FIX"},
		{"an account from elsewhere", func(e *evidence) {
			add(&e.Leader.Grants, preflight.Grant{Kind: "ClusterRoleBinding", Name: "tool", WritesExports: true, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "tools", Name: "tool"}}})
		}, "FIX"},
		{"all accounts of the common area", func(e *evidence) {
			add(&e.Leader.Grants, preflight.Grant{Kind: "RoleBinding", Name: "all", MemberRole: true, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:" + area}}})
		}, "FIX"},
		{"a Secret alone", func(e *evidence) { add(&e.Leader.Secrets, "default-member-token") }, "FIX"},
		{"a binding that gives other rights", func(e *evidence) {
			add(&e.Leader.Grants, preflight.Grant{Kind: "RoleBinding", Name: "viewer", Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: area, Name: "default"}}})
		}, ""},
		{"an old name that is bound to an ID", func(e *evidence) {
			add(&e.Leader.Accounts, admission.Account{Name: "default-member-token", Annotated: true, BoundID: "north"})
			add(&e.Leader.Grants, grantOf("default-member-token", "default-member-token"))
			add(&e.Leader.Secrets, "default-member-token")
		}, ""},
		{"a person", func(e *evidence) {
			add(&e.Leader.Grants, preflight.Grant{Kind: "RoleBinding", Name: "p", MemberRole: true, Subjects: []rbacv1.Subject{{Kind: "User", Name: "someone"}}})
		}, ""},
		{"a member whose token cannot be read", func(e *evidence) { e.Members[0].Unreachable = "no route to host" }, "UNKNOWN east"},
	},
	"UPG-CHK-5": {
		{"the token of another", eastCredential(func(c *preflight.Credential) { c.Account = "west-token" }), "REFUSE east"},
		{"a rejected token", eastCredential(func(c *preflight.Credential) { c.Rejected = "Unauthorized" }), "REFUSE east"},
		{"no token of a ServiceAccount", eastCredential(func(c *preflight.Credential) { c.Namespace, c.Account = "", "" }), "REFUSE east"},
		{"an account of that name elsewhere", eastCredential(func(c *preflight.Credential) { c.Namespace = "default" }), "REFUSE east"},
		{"another Secret with the right token", eastCredential(func(c *preflight.Credential) { c.Secret = "x" }), ""},
		{"a Secret that cannot be read", func(e *evidence) { e.Members[1].Credential = rule.Unreadable[preflight.Credential]("forbidden") }, "UNKNOWN west"},
	},
	"UPG-CHK-6": {
		{"the Secret was written after the start", eastCredential(func(c *preflight.Credential) { c.Written = now.Add(-time.Hour) }), "REFUSE east"},
		{"the ClusterSet was changed after the start", eastCredential(func(c *preflight.Credential) { c.Directed = now.Add(-time.Hour) }), "REFUSE east"},
		{"at the start exactly", eastCredential(func(c *preflight.Credential) { c.Written = now.Add(-24 * time.Hour) }), ""},
		{"a controller of ours follows by itself", both(eastController(ours), eastCredential(func(c *preflight.Credential) { c.Written = now })), ""},
	},
	"UPG-CHK-7": {
		{"a pair that is alive", both(announceAs(func(a *v1alpha1.MemberClusterAnnounce) { a.ClusterID = "west-1" }), bindAs(true, "west-1"), eastSet(func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID = "west-1" })), "FIX west-1"},
		{"a pair of which one has no announce", func(e *evidence) {
			add(&e.Leader.Accounts, admission.Account{Name: "x", Annotated: true, BoundID: "east-1"})
		}, "REFUSE east-1"},
		{"a pair of which one is silent", both(announceAs(func(a *v1alpha1.MemberClusterAnnounce) { a.ClusterID = "west-1" }), bindAs(true, "west-1"),
			eastSet(func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID = "west-1" }), beatAgo(time.Minute)), "REFUSE west-1"},
		{"a suffix without a dash", func(e *evidence) {
			add(&e.Leader.Accounts, admission.Account{Name: "x", Annotated: true, BoundID: "east1"})
		}, ""},
	},
	"UPG-CHK-8": {
		{"31 s", beatAgo(31 * time.Second), "WARN east"},
		{"30 s", beatAgo(30 * time.Second), ""},
		{"more than 12 h", beatAgo(12*time.Hour + time.Second), "REFUSE east"},
		{"12 h", beatAgo(12 * time.Hour), "WARN east"},
		{"more than 24 h", beatAgo(25 * time.Hour), "FIX east"},
		{"a clock a day ahead", beatAgo(-25 * time.Hour), "FIX east"},
		{"a clock an hour ahead", beatAgo(-time.Hour), ""},
		{"no time at all", touchAs("yesterday"), "FIX east"},
		{"never, of an old announce", touchAs(""), "FIX east"},
		{"never, of a new announce", both(touchAs(""), announceAs(func(a *v1alpha1.MemberClusterAnnounce) {
			a.CreationTimestamp = metav1.NewTime(now.Add(-9 * time.Second))
		})), "WAIT east"},
	},
	"UPG-CHK-9": {
		{"claims are served", eastLegacy(func(l *preflight.Legacy) { l.ClaimsServed = true }), "WARN east"},
		{"no cluster ID", eastSet(func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID = "" }), "FIX east"},
		{"a claim in a list of nobody", eastLegacy(func(l *preflight.Legacy) { l.Claims = []v1alpha2.ClusterClaim{{Value: "x"}} }), ""},
	},
	"UPG-CHK-10": {
		{"another name than at the leader", eastSet(func(s *v1alpha2.ClusterSet) { s.Name = "navy" }), "REFUSE east"},
		{"another name than was claimed", eastLegacy(func(l *preflight.Legacy) {
			l.Claims = []v1alpha2.ClusterClaim{{ObjectMeta: metav1.ObjectMeta{Name: "clusterset.k8s.io"}, Value: "navy"}}
		}), "REFUSE east"},
		{"the name that was claimed", eastLegacy(func(l *preflight.Legacy) {
			l.Claims = []v1alpha2.ClusterClaim{{ObjectMeta: metav1.ObjectMeta{Name: "clusterset.k8s.io"}, Value: "fleet"}}
		}), ""},
	},
	"UPG-CHK-11": {
		{"stored as v1alpha1", eastLegacy(func(l *preflight.Legacy) { l.StoredVersions = []string{"v1alpha1", "v1alpha2"} }), "WARN east"},
		{"with spec.members", eastLegacy(func(l *preflight.Legacy) { l.SpecMembers = true }), "WARN east"},
		{"written as v1alpha1", eastSet(func(s *v1alpha2.ClusterSet) {
			s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", APIVersion: "multicluster.crd.antrea.io/v1alpha1"}}
		}), "WARN east"},
		{"applied as v1alpha1", eastSet(func(s *v1alpha2.ClusterSet) {
			s.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"multicluster.crd.antrea.io/v1alpha1"}`}
		}), "WARN east"},
		{"applied as v1alpha2", eastSet(func(s *v1alpha2.ClusterSet) {
			s.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"multicluster.crd.antrea.io/v1alpha2"}`}
		}), ""},
	},
	"UPG-CHK-12": {
		{"a-b/c meets a/b-c", exporting(serviceExportOf("west", "a-b", "c"), serviceExportOf("east", "a", "b-c")), "FIX"},
		{"one Service of two members", exporting(serviceExport("west")), ""},
		{"each has an import of its own", both(exporting(serviceExportOf("west", "a-b", "c"), serviceExportOf("east", "a", "b-c")), func(e *evidence) {
			add(&e.Leader.Imports, importOf("a-b-c-service", v1alpha1.KindServiceImport, "a-b", "c"), importOf("a-b-c-12345678-service", v1alpha1.KindServiceImport, "a", "b-c"))
		}), ""},
	},
	"UPG-CHK-13": {
		{"a-b/c meets a/b-c in one member", eastExports("a-b/c", "a/b-c"), "FIX east"},
		{"they are in two members", both(eastExports("a-b/c"), func(e *evidence) {
			add(&e.Members[1].Exported, preflight.Exported{NamespacedName: types.NamespacedName{Namespace: "a", Name: "b-c"}})
		}), ""},
	},
	"UPG-CHK-14": {
		{"east's 1-shop/cart meets shop/cart of east-1", both(eastExports("1-shop/cart"), exporting(serviceExport("east-1"))), "FIX east-1"},
		{"other Services of such a pair", both(eastExports("shop/tea"), exporting(serviceExport("east-1"))), ""},
	},
	"UPG-CHK-15": {
		{"a wrong label", exportAs(0, func(x *v1alpha1.ResourceExport) { x.Labels[v1alpha1.LabelSourceClusterID] = "west" }), "FIX east"},
		{"no finalizer", exportAs(0, func(x *v1alpha1.ResourceExport) { x.Finalizers = nil }), "FIX east"},
		{"a ClusterInfo as before v2.7", exportAs(2, func(x *v1alpha1.ResourceExport) { x.Labels = nil }), "WARN east"},
		{"a policy of a member", exporting(exportOf("east", v1alpha1.KindAntreaClusterNetworkPolicy, "", "x", "x")), "FIX east"},
		{"a policy of an administrator", exporting(policyExport("baseline")), ""},
		{"the old finalizer", exportAs(0, func(x *v1alpha1.ResourceExport) { x.Finalizers = []string{v1alpha1.FinalizerExportLegacy} }), ""},
	},
	"UPG-CHK-16": {
		{"the selector of v1.5.0", eastController(func(c *preflight.Controller) { c.Selector = map[string]string{"control-plane": "antrea-mc-controller"} }), "REFUSE east"},
		{"one label more", leaderController(func(c *preflight.Controller) {
			c.Selector = map[string]string{"app": "antrea", "component": "antrea-mc-controller", "x": "y"}
		}), "REFUSE"},
		{"another name", eastController(func(c *preflight.Controller) { c.Name = "mc" }), ""},
	},
	"UPG-CHK-17": {
		{"a member newer than the leader", eastController(upstreamAt("v2.8.0")), "REFUSE east, WARN"},
		{"a member older than the leader", eastController(upstreamAt("v2.6.0")), "WARN, WARN east"},
		{"a member with a newer patch", both(eastController(upstreamAt("v2.7.1")), func(e *evidence) {
			edit(&e.Members[1].Controllers, func(c *[]preflight.Controller) { (*c)[0].Version = "v2.7.1" })
		}), ""},
		{"a newer command line", func(e *evidence) { e.CLI = rule.Known("v2.8.0") }, "WARN, WARN east, WARN west"},
		{"no upstream command line", func(e *evidence) { e.CLI = rule.Known("") }, ""},
		{"Kubernetes 1.22", func(e *evidence) { e.Members[0].Kubernetes = rule.Known("v1.22.9") }, "REFUSE east"},
		{"Kubernetes 1.23", func(e *evidence) { e.Members[0].Kubernetes = rule.Known("v1.23.0") }, ""},
		{"Kubernetes 1.33 with a controller that cannot find the range", func(e *evidence) {
			eastController(upstreamAt("v2.4.0"))(e)
			leaderController(upstreamAt("v2.4.0"))(e)
			edit(&e.Members[1].Controllers, func(c *[]preflight.Controller) { (*c)[0].Version = "v2.4.0" })
			e.Members[1].Kubernetes, e.CLI = rule.Known("v1.32.0"), rule.Known("v2.4.0")
		}, "REFUSE east"},
		{"a version that nobody can tell", eastController(upstreamAt("latest")), "UNKNOWN east"},
		{"a version of ours that nobody can tell is no obstacle", both(eastController(ours), eastController(upstreamAt("latest")), leaderController(ours), func(e *evidence) {
			edit(&e.Members[1].Controllers, func(c *[]preflight.Controller) { ours(&(*c)[0]) })
		}), "UNKNOWN east"},
	},
	"UPG-CHK-18": {
		{"an ID with a dot", announceAs(func(a *v1alpha1.MemberClusterAnnounce) { a.ClusterID = "ea.st" }), "FIX ea.st"},
		{"64 letters", func(e *evidence) {
			add(&e.Leader.Accounts, admission.Account{Annotated: true, BoundID: strings.Repeat("x", 64)})
		}, "FIX " + strings.Repeat("x", 64)},
		{"63 letters", func(e *evidence) {
			add(&e.Leader.Accounts, admission.Account{Annotated: true, BoundID: strings.Repeat("x", 63)})
		}, ""},
	},
	"UPG-CHK-19": {
		{"one Service range in two members", exportAs(3, func(x *v1alpha1.ResourceExport) { x.Spec.ClusterInfo.ServiceCIDR = "10.1.128.0/17" }), "FIX west"},
		{"a Pod range in a Service range", exportAs(3, func(x *v1alpha1.ResourceExport) { x.Spec.ClusterInfo.PodCIDRs = []string{"10.1.0.0/24"} }), "FIX west"},
		{"a range of the leader", func(e *evidence) { add(&e.Leader.Ranges, netip.MustParsePrefix("10.2.0.0/24")) }, "FIX west"},
		{"a range of the leader, which is that member", func(e *evidence) {
			add(&e.Leader.Ranges, netip.MustParsePrefix("10.2.0.0/24"))
			e.Members[1].UID = e.Leader.UID
		}, ""},
		{"no range", exportAs(3, func(x *v1alpha1.ResourceExport) { x.Spec.ClusterInfo.PodCIDRs = []string{"ten"} }), "FIX west"},
		{"the neighbouring range", exportAs(3, func(x *v1alpha1.ResourceExport) { x.Spec.ClusterInfo.ServiceCIDR = "10.3.0.0/16" }), ""},
	},
	"UPG-CHK-20": {
		{"another overlay", eastSettings(func(s *preflight.Settings) { s.Overlay = "vxlan" }), "WARN"},
		{"policies across clusters in one", eastSettings(func(s *preflight.Settings) { s.Stretched = true }), "WARN"},
		{"a WireGuard key of one", exportAs(2, func(x *v1alpha1.ResourceExport) {
			x.Spec.ClusterInfo.WireGuard = &v1alpha1.WireGuardInfo{PublicKey: "x"}
		}), "WARN"},
		{"a range may differ", eastSettings(func(s *preflight.Settings) { s.ServiceCIDR = "10.1.0.0/16" }), ""},
	},
	"UPG-CHK-21": {
		{"a tier that one lacks", both(exporting(policyExport("secops")), func(e *evidence) { add(&e.Members[0].Tiers, "secops") }), "WARN west"},
		{"no tier", exporting(policyExport("")), "WARN east, WARN west"},
		{"a tier that all have", exporting(policyExport("baseline")), ""},
		{"tiers that cannot be read", both(exporting(policyExport("baseline")), func(e *evidence) { e.Members[1].Tiers = rule.Read[[]string]{} }), "UNKNOWN west"},
	},
	"UPG-CHK-22": {
		{"an import without export", func(e *evidence) { add(&e.Leader.Imports, importOf("x", v1alpha1.KindServiceImport, "a", "b")) }, "FIX"},
		{"an export of nobody", exporting(serviceExport("north")), "FIX north"},
		{"a finalizer of another ID", announceAs(func(a *v1alpha1.MemberClusterAnnounce) {
			a.Finalizers = append(a.Finalizers, v1alpha1.FinalizerAnnouncePrefix+"old")
		}), "FIX east"},
		{"an imported Service of no import", func(e *evidence) {
			add(&e.Members[1].Imported, preflight.Imported{Kind: "Service", NamespacedName: types.NamespacedName{Namespace: "a", Name: "antrea-mc-b"}})
		}, "FIX west"},
		{"an administrator's export has no member", both(exporting(policyExport("baseline")), func(e *evidence) {
			add(&e.Leader.Imports, importOf("strict-antreaclusternetworkpolicy", v1alpha1.KindAntreaClusterNetworkPolicy, "", "strict"))
			add(&e.Members[0].Imported, preflight.Imported{Kind: "ClusterNetworkPolicy", NamespacedName: types.NamespacedName{Name: "antrea-mc-strict"}})
		}), ""},
	},
	"UPG-CHK-23": {
		{"one Node", func(e *evidence) { e.Members[0].Nodes = rule.Known(1) }, "WARN east"},
		{"two Nodes", func(e *evidence) { e.Members[0].Nodes = rule.Known(2) }, ""},
		{"one Node, the old Pod goes first", both(func(e *evidence) { e.Members[0].Nodes = rule.Known(1) }, eastController(func(c *preflight.Controller) { c.Surge = false })), ""},
		{"leader and member on the same ports", func(e *evidence) {
			c, _ := e.Leader.Controllers.Get()
			add(&e.Members[0].Controllers, c[0])
		}, "WARN east"},
		{"leader and member on other ports", func(e *evidence) {
			c, _ := e.Leader.Controllers.Get()
			other := c[0]
			other.Ports = []int32{9444, 8081}
			add(&e.Members[0].Controllers, other)
		}, ""},
	},
	"UPG-CHK-24": {
		{"276 days", leaderController(func(c *preflight.Controller) { c.Started = []time.Time{now.Add(-276 * 24 * time.Hour)} }), "WARN"},
		{"275 days", leaderController(func(c *preflight.Controller) { c.Started = []time.Time{now.Add(-275 * 24 * time.Hour)} }), ""},
		{"ours makes a new one in time", leaderController(func(c *preflight.Controller) { ours(c); c.Started = []time.Time{now.Add(-900 * 24 * time.Hour)} }), ""},
	},
	"UPG-CHK-25": {
		{"54 letters", eastExports("shop/" + strings.Repeat("x", 54)), "FIX east"},
		{"54 letters among our own", both(eastExports("shop/"+strings.Repeat("x", 54)), func(e *evidence) {
			for i := range e.Members {
				edit(&e.Members[i].Controllers, func(c *[]preflight.Controller) { ours(&(*c)[0]) })
			}
		}), "INFO east"},
		{"53 letters", eastExports("shop/" + strings.Repeat("x", 53)), ""},
	},
	"UPG-CHK-26": {
		{"a valid export that is missing", func(e *evidence) { add(&e.Members[1].Exported, exportedOf("shop", "tea")) }, "FIX west"},
		{"an invalid export may be missing", eastExports("shop/tea"), ""},
		{"other ports", exportAs(0, func(x *v1alpha1.ResourceExport) { x.Spec.Service.ServiceSpec.Ports[0].Port = 81 }), "FIX east"},
		{"other addresses", exportAs(1, func(x *v1alpha1.ResourceExport) { x.Spec.Endpoints.Subsets = nil }), "FIX east"},
		{"an own peer without slices", announceAs(ourPeer), "FIX east"},
		{"an own peer under a leader that knows only the wire", announceAs(func(a *v1alpha1.MemberClusterAnnounce) { a.Annotations[v1alpha1.AnnotationPeer] = "v1" }), ""},
		{"an own peer with slices", both(announceAs(ourPeer), func(e *evidence) {
			add(&e.Leader.Slices, sliceOf("east", "shop", "cart", "10.1.7.7"))
		}), ""},
		{"a Node and no Gateway", func(e *evidence) { e.Members[0].Gateways = rule.Known([]v1alpha1.Gateway{}) }, "FIX east"},
		{"no ready Node and no Gateway", func(e *evidence) {
			e.Members[0].Gateways = rule.Known([]v1alpha1.Gateway{})
			e.Members[0].GatewayNodes = rule.Known([]preflight.GatewayNode{{Name: "node-1", GatewayIP: "192.0.2.1"}})
		}, ""},
		{"a Gateway of a Node that is gone", func(e *evidence) {
			edit(&e.Members[0].GatewayNodes, func(n *[]preflight.GatewayNode) { *n = (*n)[1:] })
		}, "FIX east"},
		{"a Gateway of a Node that is not ready", func(e *evidence) {
			edit(&e.Members[0].GatewayNodes, func(n *[]preflight.GatewayNode) { (*n)[0].Ready = false })
		}, "FIX east"},
		{"a Gateway with another address", func(e *evidence) {
			edit(&e.Members[0].GatewayNodes, func(n *[]preflight.GatewayNode) { (*n)[0].GatewayIP = "192.0.2.9" })
		}, "FIX east"},
		{"labels that nobody exported", both(eastSettings(func(s *preflight.Settings) { s.Stretched = true }), func(e *evidence) { add(&e.Members[0].Labels, "ns:&pod:") }), "FIX east"},
		{"labels where no policy reaches", func(e *evidence) { add(&e.Members[0].Labels, "ns:&pod:") }, ""},
	},
	"UPG-CHK-27": {
		{"ready here, silent there", beatAgo(31 * time.Second), "REFUSE east"},
		{"silent on both sides", both(beatAgo(31*time.Second), eastSet(func(s *v1alpha2.ClusterSet) { s.Status.Conditions[0].Status = "False" })), ""},
		{"no announce at all", func(e *evidence) {
			edit(&e.Leader.Announces, func(a *[]v1alpha1.MemberClusterAnnounce) { *a = (*a)[1:] })
		}, "REFUSE east"},
	},
}
