package podaddr_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podaddr"
)

func TestNewRefusesRangesWithoutTwin(t *testing.T) {
	for prefix, reason := range map[string]string{
		"192.168.0.0/16": "192.168.x.y and 10.168.x.y would share a twin",
		"127.1.0.0/16":   "an EndpointSlice may not hold loopback addresses",
		"fd00::/64":      "there is one IPv6 loopback address, not a range",
		"10.1.2.0/30":    "nothing is left after the reserved addresses",
	} {
		if _, err := podaddr.New(netip.MustParsePrefix(prefix)); err == nil {
			t.Errorf("New(%s) succeeded; want an error because %s", prefix, reason)
		}
	}
}

func TestTake(t *testing.T) {
	pool := newPool(t, "10.7.0.0/29") // .2 to .6 are for Pods
	take := func(owner, current, want string) {
		t.Helper()
		var wish netip.Addr
		if current != "" {
			wish = netip.MustParseAddr(current)
		}
		got, err := pool.Take(owner, wish)
		if err != nil || got.String() != want {
			t.Fatalf("Take(%s, %q) = %v, %v; want %s", owner, current, got, err, want)
		}
	}
	take("kept", "10.7.0.3", "10.7.0.3")  // a Pod from before the restart
	take("a", "", "10.7.0.2")             // in order
	take("b", "", "10.7.0.4")             // over the one that is held
	take("a", "", "10.7.0.2")             // same owner, same address
	take("clash", "10.7.0.3", "10.7.0.5") // held by another
	take("stray", "10.9.0.3", "10.7.0.6") // not of this range
	if _, err := pool.Take("late", netip.Addr{}); !errors.Is(err, podaddr.ErrExhausted) {
		t.Fatalf("Take from a full range = %v; want ErrExhausted", err)
	}
	pool.Release("b")
	pool.Release("a")
	pool.Release("a")         // twice is once
	take("c", "", "10.7.0.4") // the one that rested longest
	take("d", "", "10.7.0.2")
}

func TestReservedAddressesAreNotTaken(t *testing.T) {
	pool := newPool(t, "10.0.0.0/16")
	if got := pool.Node().String(); got != "10.0.0.1" {
		t.Errorf("Node() = %s; want 10.0.0.1", got)
	}
	for _, wish := range []string{"10.0.0.0", "10.0.0.1", "10.0.255.255"} {
		got, err := pool.Take("pod-"+wish, netip.MustParseAddr(wish))
		if err != nil || got.String() == wish {
			t.Errorf("Take(%s) = %v, %v; want another address", wish, got, err)
		}
	}
}

// No two owners ever share an address, whatever the order of taking, giving
// back and asking by name.
func TestAddressesAreUnique(t *testing.T) {
	pool := newPool(t, "10.7.0.0/26")
	random := rand.New(rand.NewPCG(1, 2))
	owned := map[string]netip.Addr{}
	for step := range 20_000 {
		owner := fmt.Sprint("pod-", random.IntN(80))
		if random.IntN(3) == 0 {
			pool.Release(owner)
			delete(owned, owner)
			continue
		}
		wish := netip.AddrFrom4([4]byte{10, 7, 0, byte(random.IntN(70))})
		got, err := pool.Take(owner, wish)
		if err != nil {
			if len(owned) != 61 {
				t.Fatalf("step %d: %v with %d of 61 held", step, err, len(owned))
			}
			continue
		}
		owned[owner] = got
		for other, addr := range owned {
			if other != owner && addr == got {
				t.Fatalf("step %d: %s given to %s and %s", step, got, owner, other)
			}
		}
	}
}

func TestTwin(t *testing.T) {
	for in, want := range map[string]string{
		"10.4.0.17": "127.4.0.17",
		"192.0.2.1": "invalid IP",
		"fd00::1":   "invalid IP",
	} {
		if got := podaddr.Twin(netip.MustParseAddr(in)).String(); got != want {
			t.Errorf("Twin(%s) = %s; want %s", in, got, want)
		}
	}
}

func BenchmarkTakeRelease(b *testing.B) {
	pool, _ := podaddr.New(netip.MustParsePrefix("10.7.0.0/16"))
	for i := range 60_000 {
		_, _ = pool.Take(fmt.Sprint(i), netip.Addr{})
	}
	for b.Loop() {
		_, _ = pool.Take("one more", netip.Addr{})
		pool.Release("one more")
	}
}

func newPool(t *testing.T, prefix string) *podaddr.Pool {
	t.Helper()
	pool, err := podaddr.New(netip.MustParsePrefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	return pool
}
