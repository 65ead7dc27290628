package role

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// lateLock is a lock that somebody else makes between a replica's look and its try.
type lateLock struct {
	storedLease
	fails error
	tried func()
}

func (l *lateLock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	l.tried()
	return l.fails
}

func (l *lateLock) Identity() string { return "second" }
func (l *lateLock) Describe() string { return "area/lockstep-leader" }

// The election of the library itself writes the lines, whatever its words are.
func TestALateReplicaLogsNoError(t *testing.T) {
	late := apierrors.NewAlreadyExists(corev1.Resource("leases"), "lockstep-leader")
	for name, tc := range map[string]struct {
		reason string
		level  slog.Level
		fails  error
		want   string // the level of its line; "" for none
	}{
		"somebody was first":        {"that is how an election goes", slog.LevelInfo, late, ""},
		"for who wants details":     {"it is there", slog.LevelDebug, late, "level=DEBUG"},
		"something is wrong":        {"without the lease nobody works", slog.LevelInfo, errors.New("no route to host"), "level=ERROR"},
		"it may not make the lease": {"likewise", slog.LevelInfo, apierrors.NewForbidden(corev1.Resource("leases"), "x", errors.New("no")), "level=ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			handler := Calm(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: tc.level}))
			ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.FromSlogHandler(handler.WithAttrs([]slog.Attr{slog.String("role", "leader")}))))
			klog.EnableContextualLogging(true)
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: &lateLock{fails: tc.fails, tried: cancel}, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
			})
			if err != nil {
				t.Fatal(err)
			}
			elector.Run(ctx)
			var line string
			for text := range strings.Lines(out.String()) {
				if strings.Contains(text, "lockstep-leader") && strings.Contains(text, "err=") {
					line = text
				}
			}
			if (line != "") != (tc.want != "") || !strings.Contains(line, tc.want) {
				t.Errorf("%s: want %q\n%s", tc.reason, tc.want, out.String())
			}
		})
	}
}
