// Package pattern compiles regular expressions when they are first needed.
//
// Compiled when a package is initialised, all patterns of the program took a third of the time in which
// `orrery version` runs, and each verb needs few of them.
package pattern

import (
	"regexp"
	"sync"
)

// New returns a function that compiles an expression on its first call. It panics then if the
// expression is wrong, which internal.TestPatterns finds earlier.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
