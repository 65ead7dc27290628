package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// remote is the control of a host in another process.
type remote struct {
	cluster string
	socket  string
}

// errNoHost tells that nobody answers on the control socket.
var errNoHost = errors.New("its host does not run; `lockstep lab up` starts it again")

// answerTime is what is left of a deadline for the host to say that it passes.
const answerTime = 500 * time.Millisecond

// hostError is an error of a host, whose kind has survived the way.
type hostError struct {
	text     string
	timedOut bool
}

func (e *hostError) Error() string { return e.text }

func (e *hostError) Is(target error) bool { return e.timedOut && target == context.DeadlineExceeded }

func (r remote) WaitReady(ctx context.Context) error {
	_, err := r.call(ctx, http.MethodGet, "/ready", nil)
	return err
}

func (r remote) Status(ctx context.Context) (Status, error) {
	answer, err := r.call(ctx, http.MethodGet, "/status", nil)
	if err != nil || answer.Status == nil {
		return Status{}, err
	}
	return *answer.Status, nil
}

func (r remote) Inject(ctx context.Context, f Fault) error {
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = r.call(ctx, http.MethodPost, "/fault", body)
	return err
}

func (r remote) call(ctx context.Context, method, path string, body []byte) (reply, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dialSocket(ctx, r.socket)
		if err != nil && ctx.Err() == nil {
			return nil, errNoHost
		}
		return conn, err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, method, "http://host"+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		request.Header.Set(withinHeader, (left - min(answerTime, left/4)).String())
	}
	response, err := client.Do(request)
	if err != nil {
		return reply{}, fmt.Errorf("cannot ask the host of cluster %q: %w", r.cluster, cause(err))
	}
	defer response.Body.Close()
	var answer reply
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return reply{}, fmt.Errorf("cannot read the answer of the host of cluster %q: %w", r.cluster, cause(err))
	}
	if answer.Error != "" {
		return reply{}, &hostError{text: answer.Error, timedOut: answer.TimedOut}
	}
	return answer, nil
}

// cause takes the request line off an error of the HTTP client: the address
// of a socket tells the user nothing. A connection that breaks is a host that
// was just ended.
func cause(err error) error {
	for _, ended := range []error{errNoHost, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, ended) {
			return errNoHost
		}
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
