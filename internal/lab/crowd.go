package lab

import (
	"context"
	"io"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
)

// crowd keeps the one seat of an overloaded API server taken.
type crowd struct {
	mu   sync.Mutex
	end  context.CancelFunc // nil while there is none
	work sync.WaitGroup
}

// gather begins; again does nothing.
func (c *crowd) gather(client kubernetes.Interface) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return
	}
	var ctx context.Context
	ctx, c.end = context.WithCancel(context.Background()) // until leave, which Host.Run calls as well
	c.work.Go(func() { sit(ctx, client) })
}

// leave ends it, and returns when the seat is free.
func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		c.end()
		c.work.Wait()
		c.end = nil
	}
}

// sit makes requests whose body does not come. An API server gives up on such a
// one after a minute, and then there is the next.
func sit(ctx context.Context, client kubernetes.Interface) {
	for ctx.Err() == nil {
		body, never := io.Pipe()
		// Anybody may ask for this, and it is served in turn with what others ask.
		_ = client.AuthorizationV1().RESTClient().Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
			SetHeader("Content-Type", "application/json").MaxRetries(0).Body(body).Do(ctx).Error() // refused or too late: once more
		never.Close()
		select {
		case <-ctx.Done():
		case <-time.After(askAgain):
		}
	}
}
