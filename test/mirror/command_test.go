package mirror_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/mirror/monitor"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// call runs the program to its end.
func (p *pair) call(args ...string) (out, errOut string, code int) {
	p.t.Helper()
	program, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	command := exec.CommandContext(p.t.Context(), program, append(args, "--config", p.file("0"))...)
	command.Env = []string{asProgram + "=1"}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		p.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), command.ProcessState.ExitCode()
}

// check compares once.
func (p *pair) check() (answer monitor.Answer, code int) {
	p.t.Helper()
	out, errOut, code := p.call("mirror", "check", "--once", "-o", "json")
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		p.t.Fatalf("%v: %s %s", err, out, errOut)
	}
	return answer, code
}

// What the commands say of a pair, from nothing to a difference.
//
// covers: D-11, D-12
func TestCommands(t *testing.T) {
	p := newPair(t)
	p.fill(0, 300, 10)
	p.put(keys+"orphan", object("orphan", "orphan", 1, "gone"))
	if out, _, code := p.call("mirror", "status"); code != 4 || !strings.Contains(out, "nothing has been copied") || !strings.Contains(out, "nobody: no mirror runs") {
		t.Errorf("before the first copy status ends with %d: %s", code, out)
	}
	if _, errOut, code := p.call("mirror", "check", "--once"); code != 3 || !strings.Contains(errOut, "nothing has been copied") {
		t.Errorf("before the first copy check ends with %d: %s", code, errOut)
	}
	d := p.start("a")
	p.mustBeEqual()
	out, errOut, code := p.call("mirror", "status", "-o", "json")
	var status struct {
		Mode    string
		Owner   string
		Behind  int64
		Standby struct{ Role replica.Role }
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil || code != 0 || status.Mode != "steady" || status.Owner != "a_1" || status.Standby.Role.Side != replica.Standby {
		t.Errorf("status ends with %d: %v %s %s", code, err, out, errOut)
	}

	answer, code := p.check()
	if code != 4 || answer.Verdict != replica.Unknown || answer.RemoteCount != 301 || answer.LocalCount != 301 || len(answer.Dangling) != 1 || answer.Dangling[0].Dependent != keys+"orphan" {
		t.Errorf("one clean cut ends with %d: %+v", code, answer)
	}

	if _, err := p.to.Put(t.Context(), keys+"only-here", "x"); err != nil {
		t.Fatal(err)
	}
	p.fill(300, 301, 10)
	p.awaitCopied()
	answer, code = p.check()
	if code != 3 || answer.Verdict != replica.Inconsistent || !slices.Equal(answer.LocalSurplusKeys, []string{keys + "only-here"}) {
		t.Errorf("a surplus key ends with %d: %+v", code, answer)
	}
	out, _, code = p.call("mirror", "inspect", keys+"only-here", keys+"orphan")
	if code != 0 || !strings.Contains(out, "STATE     surplus") || !strings.Contains(out, "STATE     equal") || !strings.Contains(out, "owned by ConfigMap gone") {
		t.Errorf("inspect ends with %d: %s", code, out)
	}

	// Without a mirror what others do is after the cut, and told as that.
	if _, err := p.to.Delete(t.Context(), keys+"only-here"); err != nil {
		t.Fatal(err)
	}
	p.fill(301, 302, 10)
	p.awaitCopied()
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.to.Delete(t.Context(), keys+"c000005"); err != nil {
		t.Fatal(err)
	}
	answer, code = p.check()
	if code != 4 || answer.ForeignCount != 1 || !slices.Equal(answer.Foreign, []string{keys + "c000005"}) {
		t.Errorf("a foreign write ends with %d: %+v", code, answer)
	}
}

// The monitor answers /check while the primary changes, without a false alarm.
func TestMonitor(t *testing.T) {
	p := newPair(t)
	p.fill(0, 2000, 100)
	p.start("a")
	p.mustBeEqual()
	m := p.startRole("monitor", "mirror-monitor", "")
	for i := range 50 {
		p.fill(i*10, i*10+10, 50+i)
	}
	p.await("the monitor has compared", func() error {
		if m.metric(`lockstep_mirror_equal_revision`) == "" {
			return errors.New("no certificate of equality")
		}
		return nil
	})
	status, body := m.get("/check")
	if status != http.StatusOK || !strings.HasPrefix(body, "LOCAL ETCD missed keys\n\nLOCAL ETCD surplus keys\n\n") {
		t.Errorf("/check is answered %d: %s", status, body)
	}
	if status, body := m.get("/check"); status != http.StatusTooEarly {
		t.Errorf("the next /check is answered %d: %s", status, body)
	}
	if local, remote := m.metric("local_target_keys_count"), m.metric("remote_target_keys_count"); local != "2000" || remote != "2000" {
		t.Errorf("%s keys here, %s there", local, remote)
	}
	for _, kind := range []string{"missed", "surplus", "differs"} {
		if got := m.metric(fmt.Sprintf(`lockstep_mirror_differences{kind=%q}`, kind)); got != "0" {
			t.Errorf("%s %s", got, kind)
		}
	}
}
