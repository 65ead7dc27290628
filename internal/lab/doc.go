// Package lab runs real Kubernetes control planes on this machine, without
// root, and breaks them on request.
//
//	Spec ──> Cluster (addresses, files) ──> components (etcd, kube-apiserver, …)
//	                                             │
//	               Host supervises the components, the node agent and the relays
//	                                             │
//	     Start: hosts inside this process │ Up: one detached process per host
//
// Invariants:
//   - every file of a lab lies below its directory;
//   - every process of a lab carries LOCKSTEP_LAB=<directory> in its environment
//     and dies with its host, so Down needs no records to end them all;
//   - addresses and ports are chosen once, when the lab is created, and kept.
package lab
