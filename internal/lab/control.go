package lab

import (
	"context"
	"encoding/json"
	"errors"
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
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		status, err := h.Status(r.Context())
		answer(w, status, err)
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, h.WaitReady(r.Context()))
	})
	mux.HandleFunc("POST /fault", func(w http.ResponseWriter, r *http.Request) {
		var f Fault
		err := json.NewDecoder(r.Body).Decode(&f)
		if err == nil {
			err = h.Inject(r.Context(), f)
		}
		answer(w, nil, err)
	})
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
	Error  string  `json:"error,omitempty"`
	Status *Status `json:"status,omitempty"`
}

func answer(w http.ResponseWriter, status any, err error) {
	var body reply
	if s, ok := status.(Status); ok {
		body.Status = &s
	}
	if err != nil {
		body.Error = err.Error()
		w.WriteHeader(http.StatusInternalServerError)
	}
	_ = json.NewEncoder(w).Encode(body) // the client is gone when this fails
}
