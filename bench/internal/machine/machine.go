// Package machine says on what a figure was measured, and what it cost: the
// facts that stand above every table, the load, and the CPU time of processes.
package machine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Facts do not change while experiments run.
type Facts struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Memory  string `json:"memory"`
	Kernel  string `json:"kernel"`
	Go      string `json:"go"`
	Version string `json:"kubernetes"`
	// Disk is the kind of file system under the data of etcd.
	Disk string `json:"disk"`
}

// Look reads the facts; dir is where etcd keeps its data.
func Look(dir, kubernetes string) Facts {
	return Facts{
		CPU: cpuModel(), Cores: runtime.NumCPU(), Memory: memory(), Kernel: kernel(),
		Go: runtime.Version(), Version: kubernetes, Disk: fileSystem(dir),
	}
}

func (f Facts) String() string {
	return fmt.Sprintf("%s, %d cores, %s memory, %s, %s; %s, Kubernetes %s", f.CPU, f.Cores, f.Memory, f.Disk, f.Kernel, f.Go, f.Version)
}

func cpuModel() string {
	values := fields("/proc/cpuinfo")
	if name := values["model name"]; name != "" {
		return name
	}
	return runtime.GOARCH
}

func memory() string {
	kib, err := strconv.ParseInt(strings.TrimSuffix(fields("/proc/meminfo")["MemTotal"], " kB"), 10, 64)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
}

func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown kernel"
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}

// fileSystems are the magic numbers of statfs(2) that a data directory is
// likely to lie on.
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
}

func fileSystem(dir string) string {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "unknown file system"
	}
	if name, ok := fileSystems[int64(stat.Type)]; ok {
		return name
	}
	return fmt.Sprintf("file system 0x%x", stat.Type)
}

// fields reads the first value of each "key : value" line.
func fields(path string) map[string]string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	values := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if key = strings.TrimSpace(key); ok && values[key] == "" {
			values[key] = strings.TrimSpace(value)
		}
	}
	return values
}

// Load is the average number of runnable tasks over the last minute.
func Load() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, _ := strconv.ParseFloat(first, 64) // the kernel writes a number
	return load
}

// tick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux port
// that Go runs on.
const tick = 10 * time.Millisecond

// CPU is the processor time that a process has used; zero for one that is gone.
func CPU(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field, a name in parentheses, may hold spaces. utime is field
	// 14 (proc_pid_stat(5)), hence the 12th after the name.
	_, rest, _ := bytes.Cut(data[bytes.LastIndexByte(data, ')')+1:], []byte(" "))
	values := strings.Fields(string(rest))
	if len(values) < 13 {
		return 0
	}
	var sum time.Duration
	for _, value := range values[11:13] { // utime, stime
		ticks, _ := strconv.ParseInt(value, 10, 64) // the kernel writes numbers
		sum += time.Duration(ticks) * tick
	}
	return sum
}

// Waited is for how long the threads of a process were ready to run while no
// processor was free for them, since they began; zero for a process that is gone
// or a kernel that does not tell.
func Waited(pid int) time.Duration {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has just ended
		}
		// Nanoseconds on a processor, nanoseconds waiting for one, time slices.
		if values := strings.Fields(string(data)); len(values) == 3 {
			waited, _ := strconv.ParseInt(values[1], 10, 64) // the kernel writes numbers
			sum += time.Duration(waited)
		}
	}
	return sum
}
