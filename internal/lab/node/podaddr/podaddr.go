// Package podaddr hands out the addresses of Pods and knows where their
// processes listen.
//
// A Pod's address is 10.a.b.c, because an EndpointSlice may not hold loopback
// addresses. Its processes listen on the loopback twin 127.a.b.c, because a
// process without privileges may not hold any other. The two are one address
// in two spellings: nothing else needs to be remembered to get from a Pod to
// its process.
package podaddr

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// ErrExhausted says that every address of the range is held by a Pod.
var ErrExhausted = errors.New("no free Pod address")

// The first two addresses are never given to a Pod: .0 names the network, and
// .1 is the node's own. In 10.0.0.0/16 the twin of .1 would also be 127.0.0.1,
// where the whole machine listens.
const reserved = 2

// Pool is the range of one node and who holds which address of it. Taking and
// giving back cost the same at 10 Pods as at 50,000.
type Pool struct {
	base uint32 // first address of the range
	size uint32 // addresses in the range

	mu sync.Mutex
	// next is the lowest offset that was never handed out in order.
	next uint32
	// freed are offsets below next that were given back, oldest first: an
	// address rests as long as possible, so that a peer which still believes in
	// the old Pod does not talk to the new one.
	freed []uint32
	// owners and held are each other's inverse.
	owners map[string]uint32
	held   map[uint32]string
}

// New returns a pool over an IPv4 range inside 10.0.0.0/8.
func New(prefix netip.Prefix) (*Pool, error) {
	prefix = prefix.Masked()
	if !prefix.Addr().Is4() || prefix.Addr().As4()[0] != 10 {
		return nil, fmt.Errorf("pod range %s: want an IPv4 range inside 10.0.0.0/8, so that each address has a loopback twin", prefix)
	}
	if prefix.Bits() < 8 || prefix.Bits() > 29 {
		return nil, fmt.Errorf("pod range %s: want between /8 and /29", prefix)
	}
	return &Pool{
		base:   number(prefix.Addr()),
		size:   1 << (32 - prefix.Bits()),
		next:   reserved,
		owners: map[string]uint32{},
		held:   map[uint32]string{},
	}, nil
}

// Node is the address of the node itself: the first usable one.
func (p *Pool) Node() netip.Addr { return address(p.base + 1) }

// Take returns the address of owner. The same owner always gets the same
// address; a new owner gets current, when that is a free address of the range
// (a Pod that had it before the agent was restarted), and any other if not.
func (p *Pool) Take(owner string, current netip.Addr) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if offset, ok := p.owners[owner]; ok {
		return address(p.base + offset), nil
	}
	offset, ok := p.offset(current)
	if !ok || p.held[offset] != "" {
		if offset, ok = p.free(); !ok {
			return netip.Addr{}, fmt.Errorf("%w: all %d are held", ErrExhausted, len(p.held))
		}
	}
	p.owners[owner], p.held[offset] = offset, owner
	return address(p.base + offset), nil
}

// Release gives the address of owner back. An owner without one is fine.
func (p *Pool) Release(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	offset, ok := p.owners[owner]
	if !ok {
		return
	}
	delete(p.owners, owner)
	delete(p.held, offset)
	if offset < p.next {
		p.freed = append(p.freed, offset)
	}
}

// free finds an unused offset. Each step over a held one moves past it for
// good, so the loops cost nothing in the long run.
func (p *Pool) free() (uint32, bool) {
	for ; p.next < p.size-1; p.next++ { // the last address is the broadcast
		if p.held[p.next] == "" {
			p.next++
			return p.next - 1, true
		}
	}
	for len(p.freed) > 0 {
		offset := p.freed[0]
		p.freed = p.freed[1:]
		// It may have been taken by name in the meantime.
		if p.held[offset] == "" {
			return offset, true
		}
	}
	return 0, false
}

func (p *Pool) offset(a netip.Addr) (uint32, bool) {
	if !a.Is4() {
		return 0, false
	}
	offset := number(a) - p.base // wraps far beyond size when a is below base
	return offset, offset >= reserved && offset < p.size-1
}

// Twin is the loopback address on which the processes of a Pod listen, and the
// zero Addr for anything that is not a Pod's address.
func Twin(a netip.Addr) netip.Addr {
	if !a.Is4() || a.As4()[0] != 10 {
		return netip.Addr{}
	}
	b := a.As4()
	b[0] = 127
	return netip.AddrFrom4(b)
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
