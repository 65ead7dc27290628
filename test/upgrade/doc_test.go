// Package upgrade_test upgrades real ClusterSets: one with real controllers as
// Pods, while a witness watches its imports, and one with members played by the
// test, in which the driver is killed at each of its writes.
package upgrade_test
