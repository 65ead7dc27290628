// Package chaos_test kills everything that can be killed, at random, while
// Services come, change and go, and proves two promises: the end is what merging
// from scratch gives, and a Service nobody touched was never disturbed.
//
// The seed is logged; LOCKSTEP_CHAOS_SEED repeats it, LOCKSTEP_CHAOS_FOR sets
// how long the killing lasts.
package chaos_test
