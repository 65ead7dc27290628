// Package mc holds the verbs that make, join, watch and leave a ClusterSet.
//
// Every verb is one exported function that takes clients and typed options;
// its command only turns flags into those options. A verb may be repeated: it
// compares what it finds with what was asked for, and changes the difference.
//
// Tokens reach nothing but the Secrets and files a user asked for; no error,
// progress line or result holds one.
package mc
