// Package mirror makes a standby's etcd follow its primary's: the daemon behind
// "lockstep run mirror".
//
//	Run       probes and metrics; elected by Lease etcd-sync-mirror, lead
//	lead      sessions, one after another, until the Lease is lost
//	session   takes the standby, observes its standing, decides: copy, follow, or refuse
//	copy      the primary at one revision, owners first; then what is surplus
//	follow    the watch of the primary → merged revisions → transactions
//	          beside it: the radar for foreign writes, comparisons, the primary's role
//
// Each session begins with what the standby says of itself (replica.Standing)
// and remembers nothing of the one before. What State holds is for people.
package mirror
