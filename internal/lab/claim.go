package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// claim holds the octet of a lab against other labs of this machine: a socket
// with an abstract name, which exists exactly as long as some process has it
// open and is seen exactly where the loopback addresses are seen (both belong
// to the network namespace). A detached lab hands it down to its hosts.
type claim struct {
	octet    byte
	listener *net.UnixListener
}

// errTaken tells that another lab holds the octet.
var errTaken = errors.New("its loopback addresses are in use by another lab")

// claimOctet takes one octet.
func claimOctet(octet byte) (*claim, error) {
	name := &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@lockstep-lab-127.%d", octet)}
	listener, err := net.ListenUnix("unix", name)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("127.%d.0.0/16: %w", octet, errTaken)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot claim the addresses 127.%d.0.0/16: %w", octet, err)
	}
	return &claim{octet: octet, listener: listener}, nil
}

// claimFor takes the first free octet for the lab in a directory.
func claimFor(dir string) (*claim, error) {
	var taken error
	for _, octet := range octets(dir) {
		c, err := claimOctet(octet)
		if !errors.Is(err, errTaken) {
			return c, err
		}
		taken = err
	}
	return nil, fmt.Errorf("cannot find loopback addresses for the lab in %s: %w; stop one of the other labs first", dir, taken)
}

// file is the claim as a descriptor for a child process.
func (c *claim) file() (*os.File, error) { return c.listener.File() }

// release drops the claim, which goes on where a child has it. No claim is
// dropped without effect.
func (c *claim) release() {
	if c != nil {
		_ = c.listener.Close()
	}
}
