package joinfile

import "strings"

// nearest is the candidate with the smallest edit distance to key, letters
// compared without case; the first of equals.
func nearest(key string, candidates []string) string {
	best, least := "", -1
	for _, c := range candidates {
		if d := distance(strings.ToLower(key), strings.ToLower(c)); least < 0 || d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is Levenshtein's, one row of the table at a time.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
