package selector

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/site"
)

// A term compares a property of a node with a value.
type term struct {
	property string
	value    string
	at       int // column of the value, from 1
	from, to int // range of ids
}

// properties are the names that may be in front of "=".
var properties = []string{
	"name", "role", "group", "host", "image", "network", "engine", "id", "production", "privileged",
}

// isBoolean reports whether a property is a boolean. If no node matches a boolean, the value is not
// misspelt.
func isBoolean(property string) bool { return property == "production" || property == "privileged" }

func (t term) terms(to []term) []term { return append(to, t) }

func (t term) bind(v *View) test {
	switch t.property {
	case "id":
		return func(n *site.Node) bool { return t.from <= n.ID && n.ID <= t.to }
	case "production":
		equal := v.site.Production == (t.value == "true")
		return func(*site.Node) bool { return equal }
	case "privileged":
		want := t.value == "true"
		return func(n *site.Node) bool { return n.Privileged == want }
	}
	matches := glob(t.value)
	switch t.property {
	case "name":
		return v.byName(matches)
	case "role":
		bearers := v.rolesMatching(matches)
		return func(n *site.Node) bool {
			bears := func(role string) bool { return bearers[role] }
			return slices.ContainsFunc(n.Roles, bears) || slices.ContainsFunc(n.StandsFor, bears)
		}
	}
	return func(n *site.Node) bool { return slices.ContainsFunc(t.valuesOf(v, n), matches) }
}

// glob returns the test for a name or pattern. Parse has checked that the pattern is well-formed. Unlike in
// paths, "*" stands for "/" as well: role=* matches orrery/nginx.
func glob(pattern string) func(string) bool {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return func(name string) bool { return name == pattern }
	}
	plain := func(text string) string { return strings.ReplaceAll(text, "/", "\x00") }
	pattern = plain(pattern)
	return func(name string) bool {
		ok, _ := path.Match(pattern, plain(name))
		return ok
	}
}

// parseIDRange parses "101" or "200..231".
func parseIDRange(text string) (from, to int, ok bool) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	from, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	to, err = strconv.Atoi(last)
	return from, to, err == nil && from <= to
}
