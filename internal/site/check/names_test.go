package check

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLabel: Label accepts the same names as the regular expression of RFC 1123, in lower case.
func TestLabel(t *testing.T) {
	legal := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	agree := func(t interface{ Errorf(string, ...any) }, name string) {
		if ValidLabel(name) != legal.MatchString(name) {
			t.Errorf("%q is a label: %t", name, ValidLabel(name))
		}
	}
	for _, name := range []string{"", "-", "a", "9", "a-", "-a", "a-b", "a--b", "A", "a.b", "a_b", "ä", "a\n", "a\x00",
		"\xff", "{", "`", "/", ":"} {
		agree(t, name)
	}
	for n := 60; n < 70; n++ {
		agree(t, strings.Repeat("a", n))
	}
	rapid.Check(t, func(t *rapid.T) { agree(t, rapid.StringMatching(`[a-zA-Z0-9.-]{0,66}|.*`).Draw(t, "name")) })
}
