// Package probe looks whether containers are started, ready and alive.
//
// Machine decides when to look and what the answers mean; it is a value with
// no clock and no socket. Target looks. Run joins the two.
package probe

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Verdict is what a probe has found out so far.
type Verdict int

const (
	// Unknown is before enough answers have come.
	Unknown Verdict = iota
	Passing
	Failing
)

// eagerStart is the first pause of an eager probe; it doubles up to the period.
const eagerStart = 50 * time.Millisecond

// Spec is a probe's rhythm.
type Spec struct {
	InitialDelay, Period, Timeout time.Duration
	// Successes and Failures are how many answers in a row change the verdict.
	Successes, Failures int
	// Eager looks more often than the period until the first success. The
	// answers in between can only help: a failure among them counts nothing.
	// A real node lets a Pod with a period of 10 s wait 10 s when the first
	// look came a moment too early; a lab has no patience for that.
	Eager bool
}

// SpecOf reads the rhythm of a probe as the API server defaulted it.
func SpecOf(p *corev1.Probe, eager bool) Spec {
	seconds := func(n int32) time.Duration { return time.Duration(max(n, 1)) * time.Second }
	return Spec{
		InitialDelay: time.Duration(p.InitialDelaySeconds) * time.Second,
		Period:       seconds(p.PeriodSeconds),
		Timeout:      seconds(p.TimeoutSeconds),
		Successes:    int(max(p.SuccessThreshold, 1)),
		Failures:     int(max(p.FailureThreshold, 1)),
		Eager:        eager,
	}
}

// Machine turns answers into a verdict.
type Machine struct {
	spec    Spec
	verdict Verdict
	// regular is when the next look that counts fully is due; due is when the
	// next look of any kind is. due is never after regular.
	regular, due time.Time
	// pause is the present distance of eager looks; zero when not eager.
	pause               time.Duration
	successes, failures int
	// counted is whether the last answer was one that counts fully.
	counted bool
}

// NewMachine is for a container whose process started at the given time.
func NewMachine(spec Spec, started time.Time) *Machine {
	first := started.Add(spec.InitialDelay)
	m := &Machine{spec: spec, regular: first, due: first}
	if spec.Eager {
		m.pause = eagerStart
	}
	return m
}

// Due is when to look next.
func (m *Machine) Due() time.Time { return m.due }

// Verdict is what is known so far.
func (m *Machine) Verdict() Verdict { return m.verdict }

// Counted reports whether the last answer counted fully, rather than being one
// of the eager looks in between.
func (m *Machine) Counted() bool { return m.counted }

// Record takes the answer of a look made at the given time, and returns the
// verdict that follows from all answers.
func (m *Machine) Record(at time.Time, ok bool) Verdict {
	counts := !at.Before(m.regular)
	m.counted = counts
	if ok {
		m.successes, m.failures = m.successes+1, 0
	} else if counts {
		m.successes, m.failures = 0, m.failures+1
	}
	switch {
	case m.successes >= m.spec.Successes:
		m.verdict, m.pause = Passing, 0
	case m.failures >= m.spec.Failures:
		m.verdict = Failing
	}
	m.schedule(at, counts)
	return m.verdict
}

func (m *Machine) schedule(at time.Time, counted bool) {
	if counted {
		m.regular = at.Add(m.spec.Period)
	}
	m.due = m.regular
	if m.pause == 0 {
		return
	}
	if early := at.Add(m.pause); early.Before(m.due) {
		m.due = early
	}
	m.pause = min(2*m.pause, m.spec.Period)
}
