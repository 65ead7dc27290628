// Package blast predicts what a standby's controllers would destroy, make or
// finish destroying once nothing holds them back, and judges whether the mirror
// may be detached.
//
// The prediction errs on one side: where the outcome depends on which of two
// things a real garbage collector does first, the object counts as deleted. So
// nothing is deleted that was not predicted, as long as its value can be read.
package blast
