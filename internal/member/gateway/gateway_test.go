package gateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server is a cluster without ServiceCIDRs, whose API server refuses with says.
type server struct {
	client.Client
	says string
}

func (s *server) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

func (s *server) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errors.New(s.says)
}

// An API server that was started anew with another Service range is found out,
// and one that says nothing leaves what is known.
//
// covers: MEM-GW-5, WK-56
func TestServiceRangeIsAskedAgain(t *testing.T) {
	now := time.Unix(0, 0)
	api := &server{}
	r := &Reconciler{Local: api, LookAgain: 10 * time.Minute, Now: func() time.Time { return now }}
	for _, step := range []struct {
		reason, says string
		after        time.Duration
		want         string
	}{
		{"nothing is known", "is forbidden", 0, ""},
		{"the first answer is at once", "The range of valid IPs is 10.96.0.0/12", 0, "10.96.0.0/12"},
		{"it counts for a while", "The range of valid IPs is 10.0.0.0/16", 9 * time.Minute, "10.96.0.0/12"},
		{"then it is asked again", "The range of valid IPs is 10.0.0.0/16", time.Minute, "10.0.0.0/16"},
		{"silence is no change", "is forbidden", 20 * time.Minute, "10.0.0.0/16"},
	} {
		api.says = step.says
		now = now.Add(step.after)
		got, err := r.ask(t.Context())
		if (err == nil) != (step.want != "") || err == nil && got.String() != step.want {
			t.Errorf("%s: %s, %v, want %q", step.reason, got, err, step.want)
		}
	}
}
