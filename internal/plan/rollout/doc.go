// Package rollout decides what an upgrade does next, whatever is upgraded.
//
//	observed ── a runbook ──> []Step ── Decide(policy) ──> Decision
//
// A runbook turns what was observed into steps, each with what it would still
// change; a step is done when the world shows it, never because somebody
// remembers having done it. Decide puts gates, approvals, canaries and pauses
// over them and returns what may be changed now. Nothing that was decided is kept:
// after each change the world is read and everything decided again.
package rollout
