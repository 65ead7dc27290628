// Package crash_test ends a controller exactly before or after each write it
// makes in one story of a ClusterSet, starts it again, and proves that the story
// goes on as if nothing had happened.
//
// In each run every role is killed once, at a write of its own. Without settings
// a sample of the writes is tried, for as long as LOCKSTEP_CRASH_FOR says; its
// seed is logged, and LOCKSTEP_CRASH_SEED repeats it. LOCKSTEP_CRASH=all tries all
// of them, in LOCKSTEP_CRASH_CHAINS (3) worlds side by side, and a list like
// "leader:12:after east:3:before" only these.
package crash_test
