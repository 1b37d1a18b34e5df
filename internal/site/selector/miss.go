package selector

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// noMatch returns a problem if the term matches no node of the site. The problem names the nearest
// value that a node has.
func (t term) noMatch(v *View, text string) *problem.Problem {
	if isBoolean(t.property) {
		return nil
	}
	if v.any(t.bind(v)) {
		return nil
	}
	what := fmt.Sprintf("no node has %s %q", t.property, t.value)
	if t.property == "name" {
		what = fmt.Sprintf("no node is called %q", t.value)
	}
	p := problem.New(problem.Usage, "selector %q at %d: %s", text, t.at, what)
	known := t.knownValues(v)
	if nearest := problem.Suggest(t.value, known); nearest != "" {
		return p.Try("did you mean %q?", nearest)
	}
	if t.property == "name" && slices.Contains(properties, t.value) {
		return p.Try("write a property as %s=VALUE", t.value)
	}
	if t.property == "name" && slices.Contains((term{property: "role"}).knownValues(v), t.value) {
		return p.Try("role=%s selects by role", t.value)
	}
	if len(known) == 0 || t.property == "id" || t.property == "name" {
		return p.Try("orrery query all lists the nodes")
	}
	return p.Try("known: %s", list(known))
}

// knownValues returns all values of the term's property that nodes have, sorted.
func (t term) knownValues(v *View) []string {
	seen := map[string]bool{}
	for i := range v.site.Nodes {
		n := &v.site.Nodes[i]
		for _, value := range t.valuesOf(v, n) {
			seen[value] = true
		}
	}
	delete(seen, "")
	return slices.Sorted(maps.Keys(seen))
}

// valuesOf returns the values of the term's property for a node.
func (t term) valuesOf(v *View, n *site.Node) []string {
	switch t.property {
	case "name":
		return slices.Concat([]string{n.Name}, n.Aliases)
	case "host":
		if n.Host == "" { // a node that is not placed matches no pattern
			return nil
		}
		return []string{n.Host}
	case "image":
		return []string{n.Image}
	case "engine":
		return []string{n.Engine}
	case "group":
		return n.Groups
	case "network":
		return n.Networks()
	case "role":
		if v.closure == nil {
			v.closure = closures(v.site)
		}
		var roles []string
		for _, role := range slices.Concat(n.Roles, n.StandsFor) {
			roles = append(roles, v.closure[role]...)
		}
		return roles
	}
	return nil // ids are numbers, for which there is no nearest word
}

// list returns the first words, separated by commas.
func list(words []string) string {
	const most = 8
	if len(words) > most {
		words = append(words[:most:most], "…")
	}
	return strings.Join(words, ", ")
}
