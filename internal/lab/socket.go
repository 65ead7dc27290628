package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is how long the path of a unix socket may be: sun_path holds
// 108 bytes with the final zero (unix(7)).
const maxSocketPath = 107

func (s *site) socket() string { return filepath.Join(s.dir, "control.sock") }

// withSocketPath calls f with a path for the socket that fits the kernel's limit.
// A path that is too long is taken through a descriptor of its folder.
func withSocketPath(path string, f func(path string) error) error {
	if len(path) <= maxSocketPath {
		return f(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// listenSocket replaces what a dead host left behind; the caller holds the
// lock that says it is the only host.
func listenSocket(path string) (net.Listener, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	var listener *net.UnixListener
	err := withSocketPath(path, func(short string) (err error) {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: short})
		return err
	})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // it would unlink the short path, see above
	return listener, nil
}

func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	var conn net.Conn
	err := withSocketPath(path, func(short string) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}
