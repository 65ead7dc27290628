// Package migration is the runbook of a ClusterSet: every member gets a
// credential of its own, is proven to use it, and only then do the controllers
// become strict and new.
//
//	credential ─► carry ─► switch ─► restart ─► prove ┐ (each member)
//	                                                  ├─► leader ─► upgrade (each) ─► delete
//	                              all members proven ─┘
//
// The order is the point: a leader that binds identities denies a member without
// its own credential, and a day later all that member exports is gone. So no
// policy, approval or override lets the leader be changed before every member is
// proven.
package migration
