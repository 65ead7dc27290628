package selection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Digest changes whenever some key may be classified differently: with the
// lists, with the options, and with the built-in rows of another version. A copy
// that was made under other rules lacks keys, or has too many.
func (r Rules) Digest() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %t\n", r.Root(), r.LocalDefinitions)
	for _, row := range rows {
		fmt.Fprintf(sum, "%q %t\n", row.Pattern, row.Never)
	}
	for _, list := range []map[string]bool{localNamespaces, r.IgnoreEqual, r.SyncEqual} {
		fmt.Fprintln(sum, "list")
		for _, key := range slices.Sorted(maps.Keys(list)) {
			fmt.Fprintf(sum, "%q\n", key)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
