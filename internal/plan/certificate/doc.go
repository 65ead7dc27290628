// Package certificate decides when the key pair of the webhooks is replaced, so
// that the API server trusts whatever a replica may be serving.
//
// Each key pair has a CA of its own, whose key is thrown away at once and which
// ends when the pair does. So a CA may leave the bundle when it has ended: nobody
// can serve what it signed any more. Nothing has to be known about the replicas.
//
//	bundle   [A]          [A B]                [A B]           [B]
//	served    A            A                    B               B
//	         Stage ──► published ──overlap──► Promote ──► A has ended
package certificate
