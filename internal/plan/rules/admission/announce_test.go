package admission_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

type mca = v1alpha1.MemberClusterAnnounce

func observedAnnounce(caller admission.Caller) admission.AnnounceObserved {
	return admission.AnnounceObserved{
		Area: place, Caller: caller,
		ClusterSets: rule.Known([]*v1alpha2.ClusterSet{fleet()}),
		Accounts: rule.Known([]admission.Account{
			{Name: "harbor-token", Annotated: true, BoundID: "harbor"}, {Name: "depot-token", Annotated: true, BoundID: "depot"}, {Name: "default"},
		}),
	}
}

func withID(id string) func(*mca) {
	return func(a *mca) { a.ClusterID, a.Name = id, "member-announce-from-"+id }
}

// The cases that upstream tests, and one case on either side of
// each rule.
func TestAnnounce(t *testing.T) {
	own := announce()
	for name, c := range map[string]verdictCase[mca]{
		"a member announces itself":                  {create, member, bound("harbor"), nil, own, "", true},
		"a heartbeat":                                {update, member, bound("harbor"), own, own, "", true},
		"a member leaves":                            {del, member, bound("harbor"), own, nil, "", true},
		"nothing to decode":                          {create, member, bound("harbor"), nil, nil, "ADM-MCA-1", false},
		"an update without the old one":              {update, member, bound("harbor"), nil, own, "ADM-MCA-1", false},
		"a person creates":                           {create, person, stranger, nil, own, "ADM-MCA-2", false},
		"a person updates":                           {update, person, stranger, own, own, "ADM-MCA-2", false},
		"a person deletes":                           {del, person, stranger, own, nil, "ADM-MCA-2", true},
		"an administrator creates":                   {create, admin, stranger, nil, own, "", true},
		"an administrator updates":                   {update, admin, stranger, own, own, "", true},
		"an administrator deletes":                   {del, admin, stranger, own, nil, "ADM-MCA-2", true},
		"an administrator cannot give it another ID": {update, admin, stranger, own, announce(withID("depot")), "ADM-MCA-12", false},
		"the leader's controller updates":            {update, controller, unbound(false), own, own, "", true},
		"the leader's controller deletes":            {del, controller, unbound(false), own, nil, "", true},
		"the leader's controller is no member":       {create, controller, unbound(false), nil, own, "ADM-MCA-6", false},
		"that name in another Namespace":             {update, sa("tools", "antrea-mc-controller"), stranger, own, own, "ADM-MCA-4", false},
		"a ServiceAccount from elsewhere creates":    {create, elsewhere, stranger, nil, own, "ADM-MCA-4", false},
		"one from elsewhere deletes":                 {del, elsewhere, stranger, own, nil, "ADM-MCA-4", true},
		"the namespace controller deletes":           {del, sa("kube-system", "namespace-controller"), stranger, own, nil, "ADM-MCA-4", true},
		"the garbage collector deletes":              {del, sa("kube-system", "generic-garbage-collector"), stranger, own, nil, "ADM-MCA-4", true},
		"the account is gone":                        {create, member, missing, nil, own, "ADM-MCA-5", false},
		"the account is gone, and so may this be":    {del, member, missing, own, nil, "ADM-MCA-5", true},
		"the account cannot be read":                 {create, member, unreadable, nil, own, "ADM-MCA-5", false},
		"nor for a delete":                           {del, member, unreadable, own, nil, "ADM-MCA-5", false},
		"a credential without a binding":             {create, member, unbound(true), nil, own, "ADM-MCA-6", false},
		"the heartbeat of one, too":                  {update, member, unbound(true), own, own, "ADM-MCA-6", false},
		"a spoofed ID":                               {create, member, bound("depot"), nil, own, "ADM-MCA-6", false},
		"an update of a peer":                        {update, member, bound("depot"), own, own, "ADM-MCA-6", false},
		"a delete of a peer":                         {del, member, bound("depot"), own, nil, "ADM-MCA-6", false},
		"another ClusterSet":                         {create, member, bound("harbor"), nil, announce(func(a *mca) { a.ClusterSetID = "navy" }), "ADM-MCA-8", false},
		"another leader":                             {create, member, bound("harbor"), nil, announce(func(a *mca) { a.LeaderClusterID = "castle" }), "ADM-MCA-9", false},
		"another name":                               {create, member, bound("harbor"), nil, announce(func(a *mca) { a.Name = "harbor" }), "ADM-MCA-10", false},
		"a longer ID of a pair":                      {create, member, bound("depot-2"), nil, announce(withID("depot-2")), "ADM-MCA-11", false},
		"the shorter ID of a pair":                   {create, member, bound("de"), nil, announce(withID("de")), "", true},
		"another set at an update":                   {update, member, bound("harbor"), own, announce(func(a *mca) { a.ClusterSetID = "navy" }), "ADM-MCA-12", false},
		"another leader at an update":                {update, member, bound("harbor"), own, announce(func(a *mca) { a.LeaderClusterID = "castle" }), "ADM-MCA-12", false},
		"another ID at an update":                    {update, member, bound("depot"), own, announce(withID("depot")), "ADM-MCA-12", false},
		"a member in a pair goes on beating":         {update, member, bound("depot-2"), announce(withID("depot-2")), announce(withID("depot-2")), "", true},
		"a member's token is called like the leader's controller elsewhere": {create, sa("kube-system", "antrea-mc-controller"), stranger, nil, own, "ADM-MCA-4", false},
	} {
		t.Run(name, func(t *testing.T) {
			name := ""
			if c.new != nil {
				name = c.new.Name
			}
			c.check(t, admission.Announce(c.request(name), observedAnnounce(c.caller)))
		})
	}
}

func TestAnnouncePairsInBothDirections(t *testing.T) {
	o := observedAnnounce(bound("depot"))
	for id, allowed := range map[string]bool{"depot-2": false, "depot": false, "depot2": true} {
		o.Caller = bound(id)
		o.Accounts = rule.Known([]admission.Account{{Annotated: true, BoundID: "depot"}, {Annotated: true, BoundID: "depot-2-b"}})
		r := admission.Request[mca]{Operation: create, User: member, Object: announce(withID(id))}
		if got := admission.Announce(r, o); got.Allowed != allowed {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

func TestAnnounceWithoutEvidence(t *testing.T) {
	r := admission.Request[mca]{Operation: create, User: member, Object: announce()}
	for id, spoil := range map[string]func(*admission.AnnounceObserved){
		"ADM-MCA-7":  func(o *admission.AnnounceObserved) { o.ClusterSets = rule.Read[[]*v1alpha2.ClusterSet]{} },
		"ADM-MCA-11": func(o *admission.AnnounceObserved) { o.Accounts = rule.Read[[]admission.Account]{} },
	} {
		o := observedAnnounce(bound("harbor"))
		spoil(&o)
		if got := admission.Announce(r, o); got.Allowed || got.Rule != id || got.Code != 500 {
			t.Errorf("%s: %+v", id, got)
		}
	}
	o := observedAnnounce(bound("harbor"))
	o.ClusterSets = rule.Known([]*v1alpha2.ClusterSet{})
	if got := admission.Announce(r, o); got.Allowed || got.Rule != "ADM-MCA-7" || got.Code != 412 {
		t.Errorf("no ClusterSet: %+v", got)
	}
}

// A member that takes the leader's finalizer off leaves its exports behind.
func TestAnnounceFinalizers(t *testing.T) {
	const leaders = v1alpha1.FinalizerAnnouncePrefix + "harbor"
	with := func(finalizers ...string) *mca { return announce(func(a *mca) { a.Finalizers = finalizers }) }
	for name, c := range map[string]verdictCase[mca]{
		"kept":                         {update, member, bound("harbor"), with(leaders), with(leaders), "", true},
		"taken off":                    {update, member, bound("harbor"), with(leaders), with(), "WK-36", false},
		"taken off by the leader":      {update, controller, unbound(false), with(leaders), with(), "", true},
		"taken off by an admin":        {update, admin, stranger, with(leaders), with(), "", true},
		"a foreign one added":          {update, member, bound("harbor"), with(leaders), with(leaders, "x.example/y"), "WK-36", false},
		"a foreign one from the start": {create, member, bound("harbor"), nil, with("x.example/y"), "WK-36", false},
		"a foreign one kept":           {update, member, bound("harbor"), with("x.example/y"), with("x.example/y"), "", true},
		"a foreign one removed":        {update, member, bound("harbor"), with("x.example/y"), with(), "", true},
		"the leader's added":           {update, member, bound("harbor"), with(), with(leaders), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t, admission.Announce(c.request("member-announce-from-harbor"), observedAnnounce(c.caller)))
		})
	}
}

func TestTokensThatNeverExpire(t *testing.T) {
	o := observedAnnounce(bound("harbor"))
	r := admission.Request[mca]{Operation: update, User: member, Object: announce(), Old: announce()}
	if got := admission.Announce(r, o); !got.Allowed {
		t.Errorf("not asked for: %+v", got)
	}
	o.Policy.ExpiringTokens = true
	if got := admission.Announce(r, o); got.Allowed || got.Rule != "WK-34" {
		t.Errorf("a token without end: %+v", got)
	}
	r.User.Extra = map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=7"}}
	if got := admission.Announce(r, o); !got.Allowed {
		t.Errorf("a token that ends: %+v", got)
	}
}

// A refusal tells a member nothing about others, nor which name would do.
func TestRefusalsRevealNothing(t *testing.T) {
	o := observedAnnounce(bound("harbor"))
	o.Accounts = rule.Known([]admission.Account{{Name: "secret-token", Annotated: true, BoundID: "harbor-secret"}})
	for _, a := range []*mca{
		announce(), // a pair with harbor-secret
		announce(func(a *mca) { a.ClusterSetID = "x" }),
		announce(func(a *mca) { a.LeaderClusterID = "x" }),
		announce(func(a *mca) { a.Name = "x" }),
		announce(withID("other")),
	} {
		got := admission.Announce(admission.Request[mca]{Operation: create, User: member, Name: a.Name, Object: a}, o)
		for _, hidden := range []string{"secret", "fleet", "tower", "depot"} {
			if got.Allowed || strings.Contains(got.Message, hidden) {
				t.Errorf("%s: %q reveals %q", got.Rule, got.Message, hidden)
			}
		}
	}
}
