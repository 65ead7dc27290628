// Package floor is the least that anything costs on a stage: one small write to
// an API server, and the transactions that its etcd takes.
package floor

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/bench/internal/figure"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
)

var labels = map[string]string{"lockstep-bench": "floor"}

// Write is how long the creation of a ConfigMap takes, in milliseconds.
func Write(ctx context.Context, c *stage.Cluster, namespace, name string) (float64, error) {
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Data:       map[string]string{"key": "value"},
	}
	begun := time.Now()
	err := c.Create(ctx, object)
	return figure.Milliseconds(time.Since(begun)), err
}

// Tidy deletes what Write has left.
func Tidy(ctx context.Context, s *stage.Stage) error {
	for namespace, c := range map[string]*stage.Cluster{stage.Area: s.Leader, stage.Namespace: s.West} {
		err := c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace), client.MatchingLabels(labels))
		if err != nil {
			return err
		}
	}
	return nil
}

// Floor of a stage that has nothing else to do.
type Floor struct {
	// Writes to the API servers of leader and west, one after another, in
	// milliseconds.
	Writes []float64 `json:"writesMs"`
	// Txns a second that the leader's etcd takes of many clients at once.
	Txns float64 `json:"txnsPerSecond"`
}

// Take measures the floor; it takes about a second.
func Take(ctx context.Context, s *stage.Stage) (f Floor, err error) {
	defer func() { err = errors.Join(err, Tidy(ctx, s)) }()
	for i := range 30 {
		for namespace, c := range map[string]*stage.Cluster{stage.Area: s.Leader, stage.Namespace: s.West} {
			took, err := Write(ctx, c, namespace, fmt.Sprintf("floor-%d", i))
			if err != nil {
				return f, err
			}
			f.Writes = append(f.Writes, took)
		}
	}
	f.Txns, err = ceiling(ctx, s.Leader)
	return f, err
}

const (
	// key lies outside of what the API server reads.
	key = "/lockstep-bench/floor"
	// clients of etcd that put at once, each its share of puts of 1 KiB.
	clients, share = 32, 50
)

func ceiling(ctx context.Context, c *stage.Cluster) (_ float64, err error) {
	etcd, err := c.Etcd()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	value := string(make([]byte, 1<<10))
	begun := time.Now()
	group, each := errgroup.WithContext(ctx)
	for i := range clients {
		group.Go(func() error {
			name := fmt.Sprintf("%s/%d", key, i)
			for range share {
				if _, err := etcd.Txn(each).Then(clientv3.OpPut(name, value)).Commit(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("cannot write to etcd of %q: %w", c.Name, err)
	}
	rate := clients * share / time.Since(begun).Seconds()
	_, err = etcd.Delete(ctx, key, clientv3.WithPrefix())
	return rate, err
}

// Rows show the floors of all runs.
func Rows(floors []Floor) []report.Row {
	row := func(quantity, unit string, of func(Floor) float64) report.Row {
		values := make([]float64, len(floors))
		for i, f := range floors {
			values[i] = of(f)
		}
		return report.NewRow("floor: "+quantity, unit, values, nil, "")
	}
	return []report.Row{
		row("ConfigMap create, leader and west, p50", "ms", func(f Floor) float64 { return figure.Quantile(f.Writes, 0.5) }),
		row("ConfigMap create, leader and west, p99", "ms", func(f Floor) float64 { return figure.Quantile(f.Writes, 0.99) }),
		row("etcd transactions of 1 KiB, 32 clients", "1/s", func(f Floor) float64 { return f.Txns }),
	}
}
