// Package member runs a member cluster's part of a ClusterSet: it assembles the
// loops of the packages below it into one manager. The loops share nothing but
// the Link to the common area, and meet through objects.
package member
