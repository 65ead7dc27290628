package remote

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A member says "published" only for what it compared in a session, and begins
// another when the area shows more.
func TestLedgerSettlesWhatItsSessionExpects(t *testing.T) {
	cart, stock := types.NamespacedName{Namespace: "shop", Name: "cart"}, types.NamespacedName{Namespace: "shop", Name: "stock"}
	var l ledger
	if l.settled() != "" {
		t.Error("nothing was compared yet")
	}
	l.expect([]types.NamespacedName{cart, stock})
	first := l.current()
	l.settle(first, cart)
	if first == "" || l.settled() != "" {
		t.Errorf("session %q is settled with an export still open", first)
	}
	l.settle(first, stock)
	if l.settled() != first {
		t.Errorf("session %q is not settled", first)
	}

	l.close()
	if l.settled() != "" || l.current() != "" {
		t.Error("a closed session counts")
	}
	before := l.current() // of a comparison that begins between two sessions
	l.expect([]types.NamespacedName{cart})
	for _, session := range []string{first, before} {
		l.settle(session, cart)
		if l.settled() != "" {
			t.Errorf("a comparison of session %q settles another", session)
		}
	}
	second := l.current()
	l.settle(second, cart)
	if l.settled() != second || second == first {
		t.Errorf("sessions %q and %q", first, second)
	}
	l.expect(nil)
	if l.settled() == "" || l.settled() == second {
		t.Error("a member without exports has published all of them")
	}
}
