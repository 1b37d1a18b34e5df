// Package shell quotes words for a POSIX shell (sh(1)). It is below all packages that write scripts, for
// hosts as for nodes.
package shell

import "strings"

// Quote quotes a word.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// Join quotes words, and separates them by spaces.
func Join(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = Quote(word)
	}
	return strings.Join(all, " ")
}
