// Package admission answers the API server of the leader cluster: it reads what
// the rules ask for about each request to the common area, and asks them.
//
// Whom a request comes from is read past every cache. An account that was bound to
// another cluster a moment ago must not write as the old one.
package admission
