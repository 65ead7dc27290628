package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// endPoll is the pause between two looks for processes that were killed.
const endPoll = 10 * time.Millisecond

// endProcesses kills all processes of a lab and returns when none is left.
// Looking again also finds what a process started before it was killed.
func endProcesses(ctx context.Context, dir string) (found bool, err error) {
	for {
		pids, err := processes(dir)
		if err != nil || len(pids) == 0 {
			return found, err
		}
		found = true
		for _, pid := range pids {
			if err := killMarked(pid, dir); err != nil {
				return found, err
			}
		}
		select {
		case <-ctx.Done():
			return found, fmt.Errorf("processes %d are still there: %w", pids, ctx.Err())
		case <-time.After(endPoll):
		}
	}
}

// processes lists the processes of this user that carry the mark of a lab,
// but for this process itself.
func processes(dir string) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err == nil && pid != os.Getpid() && marked(pid, dir) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// marked tells whether a process is of this user and carries the mark. One
// that has ended carries nothing.
func marked(pid int, dir string) bool {
	path := fmt.Sprintf("/proc/%d/environ", pid)
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return false
	}
	environment, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(environment, []byte{0}), func(variable []byte) bool {
		return string(variable) == mark(dir)
	})
}

// killMarked kills one process. The handle is taken before the mark is read
// again, and it means the same process even if the pid is given to another
// (pidfd_open(2)), so a stranger is never hit.
func killMarked(pid int, dir string) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }()
	if !marked(pid, dir) {
		return nil
	}
	err = process.Kill()
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
