package proc

import "golang.org/x/sys/unix"

// waitExited blocks until the child has ended and leaves it to be reaped.
func waitExited(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		continue
	}
}
