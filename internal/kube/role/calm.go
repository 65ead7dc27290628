package role

import (
	"context"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Calm is a handler that writes as a detail what client-go's election logs as an
// error although nothing is wrong: of replicas that start together, one makes the
// lease, or takes one that is free, and the others are told that they are late.
func Calm(next slog.Handler) slog.Handler { return calm{next} }

type calm struct{ slog.Handler }

// Handle implements slog.Handler.
func (h calm) Handle(ctx context.Context, record slog.Record) error {
	if record.Level < slog.LevelError || !lateForLease(record) {
		return h.Handler.Handle(ctx, record)
	}
	record.Level = slog.LevelDebug
	if !h.Enabled(ctx, record.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{h.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (h calm) WithGroup(name string) slog.Handler { return calm{h.Handler.WithGroup(name)} }

// lateForLease knows the entry by what it is about: a lock, and an error that says
// that somebody else was first.
func lateForLease(record slog.Record) bool {
	var lock, late bool
	record.Attrs(func(attr slog.Attr) bool {
		switch attr.Key {
		case "lock":
			lock = true
		case "err":
			err, _ := attr.Value.Any().(error)
			late = apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)
		}
		return true
	})
	return lock && late
}
