package faults_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// leeway is for how long an API server accepts a token after its end.
const leeway = time.Minute

// The token of a member ends while it runs. It says so, keeps what it has, and
// goes on by itself with the next token.
// covers: WK-2, WK-4
func TestTokenEnds(t *testing.T) {
	a := begin(t)
	there, here := prepare(t, a.east, a.west), prepare(t, a.west, a.east, a.hub)
	secret := a.Token(t, a.east.Cluster, a.east.Namespace, "leader-token", "east")
	good := secret.DeepCopy()
	secret.Data["token"] = []byte(a.TokenUntil(t, string(good.Data["token"]), time.Now().Add(3*time.Second-leeway)))
	a.east.Put(t, secret)

	says(t, a.east, clusterset.ReasonUnauthorized)
	there.make(t)
	here.make(t)
	here.arrived(t, a.hub)
	there.unseen(t, a.west)
	a.east.Put(t, good.DeepCopy())
	a.east.AwaitReady(t)
	there.arrived(t, a.west, a.hub)
	here.arrived(t, a.east)
}
