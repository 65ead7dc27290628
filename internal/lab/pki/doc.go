// Package pki issues the certificates of one lab cluster: an authority of its
// own per cluster, so that a credential of one cluster is worth nothing in
// another.
package pki
