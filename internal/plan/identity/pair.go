package identity

import "strings"

// DashPair tells whether one cluster ID is the other followed by a dash and
// more. Then exports of the two can have one name: "east" exports 1-shop/cart
// and "east-1" exports shop/cart, both as east-1-shop-cart-service.
func DashPair(a, b string) bool {
	return strings.HasPrefix(a, b+"-") || strings.HasPrefix(b, a+"-")
}
