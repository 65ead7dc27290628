package local_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/kube/local"
)

// An API server without ServiceCIDRs is asked by a Service that it is to refuse;
// none is made even if it does not.
//
// covers: MEM-GW-5, WK-56
func TestAskServiceRange(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		want   string
		says   string
	}{
		"the usual refusal": {errors.New("the provided IP (0.0.0.0) is not in the valid range. The range of valid IPs is 10.96.0.0/12"), "10.96.0.0/12", ""},
		"another":           {errors.New("services is forbidden"), "", "services is forbidden"},
		"none":              {nil, "", "was not refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.CreateOption) error {
					var applied client.CreateOptions
					applied.ApplyOptions(options)
					if len(applied.DryRun) == 0 || o.GetName() != "invalid-svc" || o.GetNamespace() != "kube-system" {
						t.Errorf("%s/%s would be made (%v)", o.GetNamespace(), o.GetName(), applied.DryRun)
					}
					return tc.answer
				},
			})
			got, err := local.AskServiceRange(t.Context(), c, "kube-system")
			if tc.want != "" && (err != nil || got.String() != tc.want) {
				t.Errorf("it is %s, %v; want %s", got, err, tc.want)
			}
			if tc.want == "" && (err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "set serviceCIDR")) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
