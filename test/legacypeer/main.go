// Command legacypeer plays, in the lab only, the member controller of before
// v2.7 with those of its weaknesses that an upgrade has to live with:
//
//	WK-2   what writes exports keeps the first connection, with its credential and
//	       its cluster ID, as long as the process lives
//	WK-4   after a second connection there is one heartbeat more and then none,
//	       while the member's own ClusterSet goes on saying Ready
//	WK-63  what changed while the process was down is passed over at its start
//
// It knows nothing of our marks, exports Services as the wire has them, and imports
// nothing. No part of the product knows it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "legacypeer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		return errors.New("POD_NAMESPACE says no Namespace")
	}
	every := 10 * time.Second
	if text := os.Getenv("LOCKSTEP_INTERVAL_SCALE"); text != "" {
		scale, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("LOCKSTEP_INTERVAL_SCALE: %w", err)
		}
		every = time.Duration(float64(every) * scale)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	local, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return err
	}
	p := &peer{local: local, namespace: namespace, every: every, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	passed, err := p.present(ctx)
	if err != nil {
		return err
	}
	e := &exporter{peer: p, passed: passed, written: map[client.ObjectKey]string{}}
	var all sync.WaitGroup
	all.Go(func() { p.beat(ctx) })
	all.Go(func() { e.export(ctx) })
	all.Wait()
	return nil
}

// tick waits; it returns false when the process is to end.
func tick(ctx context.Context, interval time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(interval):
		return true
	}
}
