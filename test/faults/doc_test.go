// Package faults_test breaks one thing at a time around a running ClusterSet and
// proves that who is not concerned does not notice, that nobody loses what did
// not change, and that all is well by itself when the fault is over.
//
// Everything here can also be tried by hand, with "lockstep lab fault".
package faults_test
