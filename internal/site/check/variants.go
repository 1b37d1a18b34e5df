package check

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/twin"
	"orrery/roles"
)

// checkVariants checks combinations of roles in releases and in twins, where other roles replace
// some. It does not repeat mistakes that the site itself has.
func checkVariants(ix *index, found *findings) {
	for _, r := range ix.Releases {
		if len(r.Roles) == 0 && r.Requirements.File == "" {
			continue
		}
		if made, err := twin.Release(ix.Site, r.Number); err == nil {
			checkVariant(found, made, fmt.Sprintf("release %d", r.Number), len(r.Roles) > 0)
		}
	}
	if ix.Twin != "" || !anySimulated(ix) {
		return
	}
	if made, err := twin.New(ix.Site, twin.Options{Name: "check"}); err == nil {
		checkVariant(found, made, "in twins", true)
	}
}

func anySimulated(ix *index) bool {
	return slices.ContainsFunc(ix.Roles, func(r site.Role) bool { return r.SimulatedBy != "" }) ||
		slices.ContainsFunc(ix.Nodes, func(n site.Node) bool { return n.SimulatedBy != "" })
}

func checkVariant(found *findings, made *site.Site, what string, otherRoles bool) {
	ix, within := newIndex(made), newFindings()
	checkPips(ix, within)
	if otherRoles {
		checkRoleCycles(ix, within)
		checkRoleSecrets(ix, within)
		checkRolesTogether(ix, within)
		checkWaits(ix, within)
	}
	known := map[string]bool{}
	for _, m := range found.mistakes {
		known[m.text()] = true
	}
	for _, m := range within.mistakes {
		m.Key, m.Other = ix.written(m.Key), ix.written(m.Other)
		if !known[m.text()] {
			m.What = what + ": " + m.What
			found.add(m)
		}
	}
}

func (m Issue) text() string { return strings.Join(m.Key, "\x00") + "\x00" + m.What }

// written returns the key of a role as it is written in files. A role that replaces another is
// written under its own name.
func (ix *index) written(key []string) []string {
	if len(key) < 2 || key[0] != "role" || ix.roleByName[key[1]] == nil {
		return key
	}
	dir := ix.roleByName[key[1]].Dir
	if name, own := strings.CutPrefix(dir, "roles/"); (own || roles.IsShipped(dir)) && name != key[1] {
		key = slices.Clone(key)
		key[1] = name
	}
	return key
}
