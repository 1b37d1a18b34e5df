// Package check
package check

import "orrery/internal/site"

// A Mistake is one thing that is wrong with a site.
type Mistake struct {
	Key   []string // what is wrong: "node", NAME, "cpus"
	What  string
	Cure  string
	Other []string // the key of another thing that has to do with it, if any
}

// Check tells every mistake in a site.
func Check(s *site.Site) []Mistake { return nil }
