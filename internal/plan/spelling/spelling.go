// Package spelling finds what somebody probably meant to write.
package spelling

import (
	"fmt"
	"strings"
)

// Nearest is the candidate with the fewest single-letter edits to word, letter
// case aside; the first of several. Empty when not even half of the word would
// stay, since nobody meant that.
func Nearest(word string, candidates []string) string {
	best, least := "", len(word)/2+1
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is Levenshtein's, row by row.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// UnknownKey is the sentence about a key that does not exist: with the one that
// was probably meant, else with all there are.
func UnknownKey(key string, known []string) string {
	if nearest := Nearest(key, known); nearest != "" {
		return fmt.Sprintf("unknown key %q; did you mean %q?", key, nearest)
	}
	return fmt.Sprintf("unknown key %q; the keys are %s", key, strings.Join(known, ", "))
}
