package lab

import (
	"context"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/lab/pki"
)

// expireTokens makes every token that the API server ever issued worthless, by
// giving it another key to sign and to verify with. The Pods of the cluster are
// started again with new tokens; whoever keeps one elsewhere has to be given
// another, such as the members of this leader.
func (h *Host) expireTokens(ctx context.Context) error {
	_, key, err := pki.NewKey()
	if err != nil {
		return err
	}
	if err := writeFile(h.site.pki("sa.key"), key); err != nil {
		return fmt.Errorf("cannot replace the key of the tokens: %w", err)
	}
	if err := h.agent.stop(ctx); err != nil {
		return err
	}
	for _, name := range []string{ControllerManager, APIServer} {
		if err := h.units[name].stop(ctx); err != nil {
			return err
		}
	}
	for _, name := range []string{APIServer, ControllerManager} {
		h.units[name].start()
	}
	h.agent.start()
	return h.WaitReady(ctx)
}
