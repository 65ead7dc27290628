package mc

import (
	"fmt"
	"net/netip"
	"net/url"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// checkServer refuses an address of the leader's API server that a member
// cannot use: no https URL, or an address that means the member's own machine.
func checkServer(what, server string, allowLoopback bool) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return &refusal.Refusal{
			What: what,
			Why:  fmt.Sprintf("the leader's API server %q is no https URL", server),
			Next: "give --leader-apiserver https://HOST:PORT",
		}
	}
	if !allowLoopback && (clusterset.IsLoopback(server) || isUseless(u.Hostname())) {
		return &refusal.Refusal{
			What: what,
			Why:  fmt.Sprintf("%q is a loopback address: in a member it means the member's own machine, never the leader", server),
			Next: "give --leader-apiserver the URL at which members reach the leader, or --allow-loopback when all clusters run on this machine",
			Rule: "WK-55",
		}
	}
	return nil
}

// isUseless adds the addresses that mean "any of this machine's own".
func isUseless(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsUnspecified()
}
