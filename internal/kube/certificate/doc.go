// Package certificate keeps the key pair of a role's webhooks: in one Secret, so
// that all replicas serve the same; replaced while they run; and with its CA in
// the webhook configurations before anybody serves it.
//
//	active replica:  Secret, configurations → plan/certificate → Secret → configurations
//	every replica:   Secret → what is served
package certificate
