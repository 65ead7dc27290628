// Package identity says how clusters and the objects that speak of them are
// named.
//
// A name is for people and for looking an object up; it never proves whose an
// object is. Dashes join the parts of a wire name, and the parts may contain
// dashes: cluster "a-b" with namespace "c" meets cluster "a" with namespace
// "b-c". Readers therefore compare the tuple in labels and spec. Names that
// only own peers write use dots, which no part can contain.
package identity
