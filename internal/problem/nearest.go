package problem

import (
	"fmt"
	"strings"
)

// Suggest returns the candidate closest to a misspelt word, or "" if none is similar enough. The
// Damerau-Levenshtein distance may be at most 2, or a third of the word's length.
func Suggest(word string, candidates []string) string {
	best, bestDistance := "", min(max(2, len(word)/3)+1, len(word))
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		if d := distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// SuggestOr returns a cure that proposes the candidate closest to a misspelt word. If none is
// similar enough, it returns otherwise.
func SuggestOr(word string, candidates []string, otherwise string) string {
	if nearest := Suggest(word, candidates); nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	return otherwise
}

// maxCandidates limits the time of the search.
const maxCandidates = 5000

func distance(a, b string) int {
	if len(a) > 256 || len(b) > 256 { // length in bytes, which is more than 64 letters in any encoding
		return 64
	}
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return 64
	}
	var rows [3][65]int // rows for the current letter and the two previous ones
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		now, last, before := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		now[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return rows[len(x)%3][len(y)]
}

// Truncate returns text, truncated after most bytes, because text in a user's file may have any
// length.
func Truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
