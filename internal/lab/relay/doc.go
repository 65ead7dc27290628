// Package relay carries TCP connections between two parties of a lab and
// spoils them on request, as a network would: cut without a word, refused,
// slow, lossy.
//
// A relay works on streams, not packets, without root. What a program can see
// of a bad network through TCP it sees here as well: bytes that come late, do
// not come, or a connection that is reset. What it cannot show: a connection
// attempt that gets no answer. During a silent cut the kernel still accepts,
// and the silence begins with the first byte.
package relay
