package relay_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/relay"
)

// deadline bounds every wait for something that will happen.
const deadline = 20 * time.Second

// link is a relay in front of a server that sends back what it gets.
type link struct {
	*relay.Relay
	t       *testing.T
	address string
}

func start(t *testing.T) link {
	t.Helper()
	server := listen(t)
	go echo(server)
	probe := listen(t)
	address := probe.Addr().String()
	_ = probe.Close()

	r := relay.New(address, server.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	l := link{Relay: r, t: t, address: address}
	l.eventuallyDials()
	return l
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
	}
}

// eventuallyDials waits for the listener of a relay that was just started.
func (l link) eventuallyDials() {
	l.t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		if c, err := net.Dial("tcp", l.address); err == nil {
			_ = c.Close()
			return
		}
	}
	l.t.Fatal("the relay does not listen")
}

func (l link) dial() *net.TCPConn {
	l.t.Helper()
	c, err := net.Dial("tcp", l.address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func (l link) set(c relay.Condition) {
	l.t.Helper()
	if err := l.Set(c); err != nil {
		l.t.Fatal(err)
	}
}

// ask sends a word and returns what comes back in time.
func ask(c net.Conn, word string, within time.Duration) (string, error) {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	buffer := make([]byte, len(word))
	_, err := io.ReadFull(c, buffer)
	return string(buffer), err
}

func (l link) mustAsk(c net.Conn, word string) {
	l.t.Helper()
	if got, err := ask(c, word, deadline); err != nil || got != word {
		l.t.Fatalf("sent %q, got %q, %v", word, got, err)
	}
}

func TestEveryByteArrivesInOrderWhileTheConditionChanges(t *testing.T) {
	l := start(t)
	c := l.dial()
	_ = c.SetDeadline(time.Now().Add(deadline))
	sent := make([]byte, 8<<20)
	_, _ = rand.Read(sent)
	go func() {
		for part := range slices.Chunk(sent, 1<<20) {
			_, _ = c.Write(part)
		}
		_ = c.CloseWrite()
	}()
	go func() {
		for _, condition := range []relay.Condition{{Latency: 5 * time.Millisecond}, {Cut: relay.Silent}, {Latency: time.Millisecond}, {}} {
			_ = l.Set(condition)
		}
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("got %d of %d bytes, equal: %v, %v", len(got), len(sent), bytes.Equal(got, sent), err)
	}
}

func TestSilentCutHoldsBytesBackUntilItHeals(t *testing.T) {
	l := start(t)
	open := l.dial()
	l.mustAsk(open, "before")
	l.set(relay.Condition{Cut: relay.Silent})

	if got, err := ask(open, "during", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an open connection got %q, %v; want silence", got, err)
	}
	fresh := l.dial() // the kernel accepts
	if got, err := ask(fresh, "hello", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection got %q, %v; want silence", got, err)
	}

	l.set(relay.Condition{})
	for conn, word := range map[net.Conn]string{open: "during", fresh: "hello"} {
		_ = conn.SetDeadline(time.Now().Add(deadline))
		got := make([]byte, len(word))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != word {
			t.Errorf("after healing got %q, %v; want %q", got, err, word)
		}
	}
}

func TestRefusedCutResetsAndRefuses(t *testing.T) {
	l := start(t)
	open := l.dial()
	l.mustAsk(open, "before")
	l.set(relay.Condition{Cut: relay.Refused})

	if _, err := ask(open, "during", deadline); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("an open connection got %v; want a reset", err)
	}
	if _, err := net.Dial("tcp", l.address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection got %v; want refused", err)
	}
	l.set(relay.Condition{})
	l.mustAsk(l.dial(), "after")
}

func TestLatencyDelaysBothDirections(t *testing.T) {
	const latency = 30 * time.Millisecond
	l := start(t)
	c := l.dial()
	l.mustAsk(c, "warm")
	l.set(relay.Condition{Latency: latency})
	begin := time.Now()
	l.mustAsk(c, "there and back")
	if took := time.Since(begin); took < 2*latency {
		t.Errorf("a round trip took %s, want at least %s", took, 2*latency)
	}
}

func TestTotalLossEndsInAReset(t *testing.T) {
	l := start(t)
	c := l.dial()
	l.mustAsk(c, "before")
	l.set(relay.Condition{Loss: 1})
	if _, err := ask(c, "lost", deadline); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestDeadTargetResets(t *testing.T) {
	target := listen(t)
	address := listen(t)
	_, _ = target.Close(), address.Close() // their ports are free now
	r := relay.New(address.Addr().String(), target.Addr().String())
	go func() { _ = r.Run(t.Context()) }()
	l := link{Relay: r, t: t, address: address.Addr().String()}
	l.eventuallyDials()
	c, err := net.Dial("tcp", l.address)
	if err == nil {
		defer c.Close()
		_, err = ask(c, "anybody?", deadline)
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestHalfCloseIsCarried(t *testing.T) {
	l := start(t)
	c := l.dial()
	l.mustAsk(c, "all")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(deadline))
	if rest, err := io.ReadAll(c); err != nil || len(rest) != 0 {
		t.Errorf("got %q, %v; want a clean end", rest, err)
	}
}

func TestConditionIsChecked(t *testing.T) {
	for name, c := range map[string]relay.Condition{
		"unknown cut":      {Cut: "sideways"},
		"negative latency": {Latency: -1},
		"impossible loss":  {Loss: 1.5},
	} {
		if err := relay.New("", "").Set(c); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
