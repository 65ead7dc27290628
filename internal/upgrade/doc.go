// Package upgrade drives an UpgradeRun: observe, plan, report, act, again and
// again until the world is as the run wants it.
//
// There is one driver at a time, whoever it is: a person's command in the
// foreground or the role in the cluster. A Lease keeps the others out. Nothing is
// kept in the process: what the world forgets stands in the journal of the run, so
// a driver may be killed at any point and another goes on from there.
//
// The report comes before the acts, unlike in other loops: the history then
// misses no change, and the journal holds a baseline before anything rests on it.
package upgrade
