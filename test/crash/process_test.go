package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// when a process is killed, seen from its write.
type when string

const (
	before when = "before" // the write never leaves the process
	after  when = "after"  // the write is done, its answer is lost
)

// point is where a process is killed; the zero value is nowhere.
type point struct {
	write int // counted from 1
	when  when
}

func (p point) String() string { return fmt.Sprintf("%d:%s", p.write, p.when) }

var errDead = errors.New("this process was killed")

// process is one controller as its API servers see it, through all its lives. A
// killed one sends nothing more: no write, no read, no release of its lease.
type process struct {
	name string

	mu     sync.Mutex
	life   *life
	at     point
	writes []string          // that were counted since arm
	put    map[string]string // the last update by path since arm (of ClusterSets: ever), without what ticks
	killed string            // the write at which it was, since arm
	futile []string          // writes that changed nothing
}

// life is a process from one start to the next.
type life struct {
	end   context.CancelFunc
	dead  bool
	holds bool // it wrote its lease
	beats int  // announces that said the same as the one before
}

// sign is what a process shows at some moment.
type sign struct {
	life   *life
	holds  bool
	writes int // that were counted since arm
	beats  int // of this life
}

// sign of a process now.
func (p *process) sign() sign {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := sign{life: p.life, writes: len(p.writes)}
	if p.life != nil {
		s.holds, s.beats = p.life.holds && !p.life.dead, p.life.beats
	}
	return s
}

// arm counts from nothing again, and kills at a point.
func (p *process) arm(at point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A member writes once a minute what it remembers of its leader, and the first
	// time of a run says nothing new.
	maps.DeleteFunc(p.put, func(path, _ string) bool {
		return !strings.Contains(path, "/clustersets/") || strings.HasSuffix(path, "/status")
	})
	if p.put == nil {
		p.put = map[string]string{}
	}
	p.at, p.writes, p.killed, p.futile = at, nil, "", nil
}

// report is what was written since arm, at which of it the process was killed,
// and what of it changed nothing.
func (p *process) report() (writes []string, killed string, futile []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes), p.killed, slices.Clone(p.futile)
}

// enclose runs a controller again and again, each time as a new life.
func (p *process) enclose(run func(context.Context) error) func(context.Context) error {
	return func(parent context.Context) error {
		for {
			ctx, cancel := context.WithCancel(parent)
			p.mu.Lock()
			p.life = &life{end: cancel}
			p.mu.Unlock()
			err := run(ctx)
			cancel()
			if parent.Err() != nil {
				return err
			}
		}
	}
}

// wrap is role.Options.Wrap. Whoever connects belongs to the life of that moment.
func (p *process) wrap(next http.RoundTripper) http.RoundTripper {
	p.mu.Lock()
	defer p.mu.Unlock()
	return connection{next, p, p.life}
}

type connection struct {
	next    http.RoundTripper
	process *process
	life    *life
}

// RoundTrip implements http.RoundTripper.
func (c connection) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	last, err := c.process.pass(c.life, request, body)
	if err != nil {
		return nil, err
	}
	response, err := c.next.RoundTrip(request)
	if last {
		if err == nil {
			response.Body.Close()
		}
		c.life.end()
		return nil, errDead
	}
	if err == nil && request.Method == http.MethodPut && response.StatusCode == http.StatusOK {
		err = c.process.judge(request, body, response)
	}
	return response, err
}

// pass counts a request and lets it through, unless the process is dead or dies
// of it. With the last one no other request passes any more.
func (p *process) pass(l *life, request *http.Request, body []byte) (last bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.dead {
		return false, errDead
	}
	if request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/leases") {
		l.holds = true
	}
	if !p.counts(request, body) {
		if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/memberclusterannounces/") {
			l.beats++
		}
		return false, nil
	}
	write := request.Method + " " + request.URL.Path
	if p.writes = append(p.writes, write); len(p.writes) != p.at.write || p.killed != "" {
		return false, nil
	}
	l.dead, p.killed = true, write
	if p.at.when == before {
		l.end()
		return false, errDead
	}
	return true, nil
}

// counts tells whether a request is a step of the story: a write, but none of
// those that a clock brings. Leases and Events are, and so is an update that
// differs from the one before it only in times, revisions and names of sessions.
func (p *process) counts(request *http.Request, body []byte) bool {
	path := request.URL.Path
	switch request.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	if strings.Contains(path, "/leases") || strings.Contains(path, "/events") {
		return false
	}
	if request.Method != http.MethodPut {
		return true
	}
	text := fleet.WithoutTicks(string(body))
	repeated := p.put[path] == text
	if p.put == nil { // before the first arm
		p.put = map[string]string{}
	}
	p.put[path] = text
	return !repeated
}

func bodyOf(request *http.Request) ([]byte, error) {
	if request.Body == nil || request.Method == http.MethodGet {
		return nil, nil
	}
	body, err := io.ReadAll(request.Body)
	request.Body.Close()
	request.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

var decoder = serializer.NewCodecFactory(scheme.New()).UniversalDeserializer()

// judge notes an update that the API server took and that changed nothing: it
// answers with the resource version that was sent. It does so as well when the
// last finalizer goes, and with it the object.
func (p *process) judge(request *http.Request, sent []byte, response *http.Response) error {
	answer, err := io.ReadAll(response.Body)
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(answer))
	if err != nil {
		return err
	}
	was, is := decode(sent), decode(answer)
	if was == nil || is == nil || is.GetDeletionTimestamp() != nil && len(is.GetFinalizers()) == 0 {
		return nil
	}
	if was.GetResourceVersion() == is.GetResourceVersion() {
		p.mu.Lock()
		p.futile = append(p.futile, request.Method+" "+request.URL.Path)
		p.mu.Unlock()
	}
	return nil
}

// decode an object; nil for what is none, or of a kind that is not in the scheme.
func decode(encoded []byte) client.Object {
	decoded, _, err := decoder.Decode(encoded, nil, nil)
	if err != nil {
		return nil
	}
	object, _ := decoded.(client.Object)
	return object
}
