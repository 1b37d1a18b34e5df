// Package pattern compiles regular expressions when they are first used.
//
// When all patterns of the program were compiled at startup, this took a third of the running time
// of `orrery version`, although each command needs few of them.
package pattern

import (
	"regexp"
	"sync"
)

// New returns a function that compiles an expression on its first call. It panics if the expression
// is invalid, but internal.TestPatterns detects that earlier.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
