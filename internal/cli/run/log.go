package run

import (
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/role"
)

// levels by name. Details of our own and of the libraries are debug.
var levels = map[string]slog.Level{"error": slog.LevelError, "info": slog.LevelInfo, "debug": slog.LevelDebug}

var formats = map[string]func(io.Writer, *slog.HandlerOptions) slog.Handler{
	"json": func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, o) },
	"text": func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) },
}

// logger writes one line per entry, and makes the libraries do the same.
func (o options) logger(w io.Writer) (logr.Logger, error) {
	level, ok := levels[o.logLevel]
	if !ok {
		return logr.Logger{}, exit.Usagef("unknown log level %q; known are %s", o.logLevel, names(levels))
	}
	format, ok := formats[o.logFormat]
	if !ok {
		return logr.Logger{}, exit.Usagef("unknown log format %q; known are %s", o.logFormat, names(formats))
	}
	if o.verbose {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(role.Calm(format(w, &slog.HandlerOptions{Level: level, ReplaceAttr: plainLevel})))
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	return log, nil
}

// plainLevel leaves three levels. Libraries have many grades of detail, which
// slog would call DEBUG+3 and the like.
func plainLevel(groups []string, attr slog.Attr) slog.Attr {
	if level, ok := attr.Value.Any().(slog.Level); ok && len(groups) == 0 && attr.Key == slog.LevelKey && level < slog.LevelInfo {
		attr.Value = slog.AnyValue(slog.LevelDebug)
	}
	return attr
}

func names[T any](known map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}
