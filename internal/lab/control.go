package lab

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// control is what a Cluster asks of its host: a Host in this process, or a
// client of one in another.
type control interface {
	WaitReady(ctx context.Context) error
	Inject(ctx context.Context, f Fault) error
	Status(ctx context.Context) (Status, error)
}

// serve answers requests on the control socket until ctx is done. Who may
// open the socket may do everything, so the folder is its owner's only.
func (h *Host) serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", answer(func(ctx context.Context, _ io.Reader) (*Status, error) {
		status, err := h.Status(ctx)
		return &status, err
	}))
	mux.HandleFunc("GET /ready", answer(func(ctx context.Context, _ io.Reader) (*Status, error) {
		return nil, h.WaitReady(ctx)
	}))
	mux.HandleFunc("POST /fault", answer(func(ctx context.Context, body io.Reader) (*Status, error) {
		var f Fault
		if err := json.NewDecoder(body).Decode(&f); err != nil {
			return nil, err
		}
		return nil, h.Inject(ctx, f)
	}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// reply is the body of every answer.
type reply struct {
	Error string `json:"error,omitempty"`
	// TimedOut tells that the error is about time.
	TimedOut bool    `json:"timedOut,omitempty"`
	Status   *Status `json:"status,omitempty"`
}

// withinHeader carries how long the host may take. The client's own deadline
// would end the request without a word about what is missing.
const withinHeader = "Lockstep-Within"

func answer(do func(context.Context, io.Reader) (*Status, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if within, err := time.ParseDuration(r.Header.Get(withinHeader)); err == nil {
			limited, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			ctx = limited
		}
		var body reply
		status, err := do(ctx, r.Body)
		if err != nil {
			body = reply{Error: err.Error(), TimedOut: errors.Is(err, context.DeadlineExceeded)}
			w.WriteHeader(http.StatusInternalServerError)
		} else {
			body.Status = status
		}
		_ = json.NewEncoder(w).Encode(body) // when this fails, the client is gone
	}
}
