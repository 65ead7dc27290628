package mc

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
)

// watchEvery is how often a watched page is read anew: soon enough for a person,
// seldom enough for API servers that have to list all Services for it.
const watchEvery = 2 * time.Second

// runWatch shows the page, and again whenever it has changed, until the context
// ends. That is how a watch is meant to end, and no error.
func runWatch(ctx context.Context, shell *shell, flags statusFlags, names []string) error {
	w := watcher{
		connect: func(name string) Source { return shell.source(name, flags.timeout) },
		sources: shell.sources(names, flags.timeout), limit: flags.timeout,
		known: map[string]sighting{}, away: map[string]string{},
	}
	screen := newScreen(shell.Out, flags.format)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		view := w.look(ctx)
		if ctx.Err() != nil {
			return nil // what was read while ending says nothing
		}
		if err := screen.show(time.Now(), view); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// watcher reads the page again and again.
type watcher struct {
	connect func(context string) Source
	sources []Source
	limit   time.Duration
	known   map[string]sighting // the last good reading, by context
	away    map[string]string   // what the first reading in vain failed with, by context
}

// sighting is a cluster as it was at a time.
type sighting struct {
	cluster overview.Cluster
	at      time.Time
}

// look reads all clusters. One that does not answer is shown as it was last, and
// the page says since when: nothing of it has gone because it is silent.
func (w *watcher) look(ctx context.Context) overview.View {
	for i, source := range w.sources {
		if source.Reader == nil { // a kubeconfig may be put right while it is watched
			w.sources[i] = w.connect(source.Context)
		}
	}
	clusters, now := readAll(ctx, w.sources, w.limit), time.Now()
	for i, c := range clusters {
		if c.Failure != "" {
			clusters[i] = w.remembered(c)
			continue
		}
		w.known[c.Context] = sighting{c, now}
		delete(w.away, c.Context)
	}
	return overview.New(now, clusters)
}

// remembered is a silent cluster as it was last. The words of the first failure
// stay, because those of the next may differ with nothing being different.
func (w *watcher) remembered(silent overview.Cluster) overview.Cluster {
	if _, before := w.away[silent.Context]; !before {
		w.away[silent.Context] = silent.Failure
	}
	last, ok := w.known[silent.Context]
	if !ok {
		silent.Failure = w.away[silent.Context]
		return silent
	}
	shown := withoutBeats(last.cluster)
	shown.Next = silent.Next
	shown.Failure = fmt.Sprintf("%s; it is shown as it was at %s", w.away[silent.Context], last.at.Format(time.TimeOnly))
	return shown
}

// withoutBeats takes the times of the heartbeats out: seen from here they grow
// old, whether or not they go on arriving there.
func withoutBeats(c overview.Cluster) overview.Cluster {
	announces := make([]v1alpha1.MemberClusterAnnounce, len(c.Announces))
	for i, a := range c.Announces {
		a.Annotations = maps.Clone(a.Annotations)
		delete(a.Annotations, v1alpha1.AnnotationTouch)
		announces[i] = a
	}
	c.Announces = announces
	return c
}
