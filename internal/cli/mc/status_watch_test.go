package mc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
	"github.com/lockstep-dev/lockstep/internal/lab"
)

// watching is a command that runs until the test interrupts it.
type watching struct {
	mu     sync.Mutex
	out    bytes.Buffer
	cancel context.CancelFunc
	ended  chan error
}

// Write implements io.Writer.
func (w *watching) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(text)
}

func (w *watching) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

func watch(t *testing.T, hub *lab.Cluster, args ...string) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{cancel: cancel, ended: make(chan error, 1)}
	root := NewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: w, ErrOut: w})
	// A page is a dozen requests, which a busy machine may need seconds for.
	root.SetArgs(append([]string{"status", "--watch", "--timeout", "10s", "--kubeconfig", hub.KubeconfigPath()}, args...))
	go func() { w.ended <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() { cancel(); <-w.ended })
	return w
}

// await waits for a text to be written.
func (w *watching) await(t *testing.T, text string) {
	t.Helper()
	if err := until(t.Context(), testTime, func(context.Context) (bool, error) { return strings.Contains(w.text(), text), nil }); err != nil {
		t.Fatalf("%q was not written: %v\n%s", text, err, w.text())
	}
}

// interrupt is what Ctrl-C comes to.
func (w *watching) interrupt(t *testing.T) {
	t.Helper()
	w.cancel()
	err := <-w.ended
	w.ended <- nil
	if exit.Code(err) != exit.Done {
		t.Errorf("ends with %d: %v", exit.Code(err), err)
	}
}

// Changes are told as they happen, an API server that stops to answer is no
// change of anything else, and the watch goes on when it is back.
func TestWatchedStatus(t *testing.T) {
	c, hub := cluster(t)
	area := namespace(t, c, "watched")
	lines, documents := watch(t, hub), watch(t, hub, "-o", "json")
	if _, err := Init(t.Context(), c, InitOptions{Namespace: area, ClusterSet: "watched", ClusterID: "hub"}); err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("clusterset watched hub hub %s 0/0 -", area)
	lines.await(t, "+ "+row)

	if err := hub.Pause(t.Context(), lab.APIServer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Continue(context.Background(), lab.APIServer) }) // it may go on already
	const silent = `problem cluster behind context "hub" cannot be read: no answer`
	lines.await(t, "+ "+silent)
	lines.await(t, "it is shown as it was at")
	documents.await(t, "it is shown as it was at")
	if err := hub.Continue(t.Context(), lab.APIServer); err != nil {
		t.Fatal(err)
	}
	lines.await(t, "- "+silent)
	if strings.Contains(lines.text(), "- "+row) {
		t.Errorf("a row went because nobody could be asked:\n%s", lines.text())
	}

	if _, err := Destroy(t.Context(), c, DestroyOptions{Namespace: area, ClusterSet: "watched"}); err != nil {
		t.Fatal(err)
	}
	lines.await(t, "- "+row)
	lines.interrupt(t)
	documents.interrupt(t)
	decoder, before := json.NewDecoder(strings.NewReader(documents.text())), ""
	for decoder.More() {
		var view overview.View
		if err := decoder.Decode(&view); err != nil {
			t.Fatalf("%v in\n%s", err, documents.text())
		}
		text, err := json.Marshal(view.WithoutBeats())
		if err != nil || string(text) == before {
			t.Errorf("a document repeats the one before: %v\n%s", err, text)
		}
		before = string(text)
	}
}

func TestAWatchHasNoVerdict(t *testing.T) {
	_, hub := cluster(t)
	_, _, err := command(t, hub, "status", "--watch", "--exit-code")
	if err == nil || !strings.Contains(err.Error(), "exit-code") {
		t.Errorf("ends with %v", err)
	}
}
