// Package etcd carries out what plan/replica decides: reads of a range at one
// revision, watches with progress, and fenced transactions on a target.
//
// What happens to a request is told as a value where the plan has an answer to
// it: a compacted revision (CompactedError), a watch that is silent
// (StalledError), and for transactions an Outcome, which keeps "it did not
// happen" apart from "nobody knows".
package etcd
