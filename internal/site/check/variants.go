package check

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// variants checks what roles do together where others are in their places: in releases and in twins. What is wrong
// anyhow is not told again.
func (c *checker) variants() {
	for _, r := range c.site.Releases {
		if len(r.Roles) == 0 && r.Requirements.File == "" {
			continue
		}
		if made, err := twin.Release(c.site, r.Number); err == nil {
			c.variant(made, fmt.Sprintf("release %d", r.Number), len(r.Roles) > 0)
		}
	}
	if c.site.Twin != "" || !c.anySimulated() {
		return
	}
	if made, err := twin.Of(c.site, twin.Options{Name: "check"}); err == nil {
		c.variant(made, "in twins", true)
	}
}

func (c *checker) anySimulated() bool {
	return slices.ContainsFunc(c.site.Roles, func(r site.Role) bool { return r.SimulatedBy != "" }) ||
		slices.ContainsFunc(c.site.Nodes, func(n site.Node) bool { return n.SimulatedBy != "" })
}

func (c *checker) variant(made *site.Site, what string, otherRoles bool) {
	v := newChecker(made)
	v.pips()
	if otherRoles {
		v.roleCycles()
		v.roleSecrets()
		v.together()
		v.waits()
	}
	known := map[string]bool{}
	for _, m := range c.mistakes {
		known[m.text()] = true
	}
	for _, m := range v.mistakes {
		m.Key, m.Other = v.written(m.Key), v.written(m.Other)
		if !known[m.text()] {
			m.What = what + ": " + m.What
			c.add(m)
		}
	}
}

func (m Mistake) text() string { return strings.Join(m.Key, "\x00") + "\x00" + m.What }

// written returns the key of a role as it is written: one that has taken the place of another stands under its own name.
func (c *checker) written(key []string) []string {
	if len(key) < 2 || key[0] != "role" || c.roles[key[1]] == nil {
		return key
	}
	if name, ok := strings.CutPrefix(c.roles[key[1]].Dir, "roles/"); ok && name != key[1] {
		key = slices.Clone(key)
		key[1] = name
	}
	return key
}
