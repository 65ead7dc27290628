package selection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// revision is that of the code that classifies: which groups are machinery, how a
// key is cut, which labels count. Whoever changes a verdict by code raises it, so that
// a standby that was copied by another version is copied again; a test holds it.
const revision = 1

// Digest changes whenever some key may be classified differently: with the
// lists, with the options, and with the built-in rows of another version. A copy
// that was made under other rules lacks keys, or has too many.
func (r Rules) Digest() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %q %t\n", revision, r.Root(), r.LocalDefinitions)
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
