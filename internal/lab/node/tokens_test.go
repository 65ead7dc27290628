package node

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-dev/lockstep/internal/lab/node/volume"
)

// A token is kept for 80 % of its life, renewed then, kept on when that fails,
// and given up when its life is over.
func TestTokensAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		issued, refuse := 0, false
		client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if refuse {
				return true, nil, apierrors.NewInternalError(fmt.Errorf("no"))
			}
			request := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
			if ref := request.Spec.BoundObjectRef; ref == nil || ref.Name != "web" || ref.UID != "u-1" {
				t.Errorf("the token is bound to %v; want the Pod", ref)
			}
			issued++
			life := time.Duration(*request.Spec.ExpirationSeconds) * time.Second
			request.Status.Token = fmt.Sprint("token-", issued)
			request.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(life))
			return true, request, nil
		})
		agent := &Agent{client: client, log: slog.New(slog.DiscardHandler)}
		seen := &observed{part: podWithToken(1000), local: &localPod{tokens: map[volume.TokenSpec]token{}}}
		begin := time.Now()
		for _, step := range []struct {
			at     time.Duration // since the begin
			refuse bool
			want   string
			again  time.Duration // since the begin
		}{
			{at: 0, want: "token-1", again: 800 * time.Second},
			{at: 799 * time.Second, want: "token-1", again: 800 * time.Second},
			{at: 800 * time.Second, want: "token-2", again: 1600 * time.Second},
			{at: 1600 * time.Second, refuse: true, want: "token-2", again: 1610 * time.Second},
			{at: 1610 * time.Second, want: "token-3", again: 2410 * time.Second},
			{at: 2610 * time.Second, refuse: true, want: ""},
		} {
			time.Sleep(step.at - time.Since(begin)) // moves the clock of the bubble, not ours
			refuse, seen.lookAgain = step.refuse, time.Time{}
			texts, err := agent.tokens(t.Context(), seen)
			if got := texts[volume.TokenSpec{Seconds: 1000}]; got != step.want || (err != nil) != (step.want == "") {
				t.Errorf("after %s: %q, %v; want %q", step.at, got, err, step.want)
			}
			if step.want != "" && seen.lookAgain.Sub(begin) != step.again {
				t.Errorf("after %s: look again after %s; want %s", step.at, seen.lookAgain.Sub(begin), step.again)
			}
		}
	})
}

func podWithToken(seconds int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u-1"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "seller",
			Volumes: []corev1.Volume{{Name: "account", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
				}},
			}}},
		},
	}
}
