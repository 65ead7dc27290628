// Package stored reads what etcd holds of a Kubernetes object, without knowing
// its kind: the metadata that decides whose it is and whether it lives, and in
// which part two values of one key differ.
//
// A value is JSON (custom resources), protobuf behind a magic number (core
// kinds), or ciphertext. Only the first two can be read; the third is told as
// such, never guessed at.
package stored
