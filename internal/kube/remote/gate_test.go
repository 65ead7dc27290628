package remote

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// What is under way when a member leaves is waited for, what comes later is
// refused: neither can write after the withdrawal.
func TestMEM_CS_5_NothingIsWrittenAfterTheWithdrawal(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-answer
	}))
	t.Cleanup(server.Close)
	g := &gate{}
	client, err := rest.HTTPClientFor(g.wrap(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	request := func() error {
		response, err := client.Post(server.URL, "", nil)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	first := make(chan error, 1)
	go func() { first <- request() }()
	<-arrived

	g.close()
	if err := request(); !errors.Is(err, ErrMoved) {
		t.Errorf("a request after the gate was closed gives %v", err)
	}
	hasty, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.wait(hasty); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting without patience gives %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- g.wait(t.Context()) }()
	select {
	case err := <-waited:
		t.Fatalf("the wait ended with %v while a request was under way", err)
	case <-time.After(10 * time.Millisecond):
	}
	close(answer)
	if err := errors.Join(<-first, <-waited, g.wait(t.Context())); err != nil {
		t.Error(err)
	}
}
