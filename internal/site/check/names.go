package check

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/text/pattern"
)

// fileNamePattern matches names that are also file names, such as those of secrets.
var fileNamePattern = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// reserved are names that resolvers, selectors or site files would interpret differently.
var reserved = []string{"all", "and", "auto", "ip6-localhost", "ip6-loopback", "localhost", "not", "or"}

func checkLabel(found *findings, key []string, kind, name string) bool {
	if ValidLabel(name) {
		return true
	}
	found.report(key, labelCure(name), "%s name %q is not a valid host name", kind, name)
	return false
}

func labelCure(name string) string {
	if len(name) > 63 {
		return "at most 63 characters"
	}
	legal := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	if ValidLabel(legal) {
		return fmt.Sprintf("such as %q: lower case letters, digits and \"-\"", legal)
	}
	return `lower case letters, digits and "-"`
}

func checkSiteName(ix *index, found *findings) {
	if ix.Name == "" {
		found.report(at("site", "name"), `write name = "…" in [site]`, "the site has no name")
		return
	}
	checkLabel(found, at("site", "name"), "site", ix.Name)
	if id := ix.ID; id != "" && !ValidLabel(id) {
		found.report(at("site", "id"), labelCure(id), "id %q is not a valid host name", id)
	}
}

func checkGroups(ix *index, found *findings) {
	for _, g := range ix.Groups {
		if !fileNamePattern().MatchString(g.Name) {
			found.report(at("group", g.Name), `letters, digits, "_", "." and "-"`, "group name %q is not valid", g.Name)
		}
		if g.Spread != "" && g.Spread != site.SpreadOverHosts {
			found.report(at("group", g.Name, "spread"), `write spread = "host"`,
				"spread = %q is unknown", g.Spread)
		}
	}
}

func checkNodeNames(ix *index, found *findings) {
	seen := make(map[string]bool, len(ix.Nodes))
	for i := range ix.Nodes {
		name := ix.Nodes[i].Name
		key := at("node", name)
		switch {
		case seen[name]:
			found.report(key, "choose another name", "two nodes are called %q", name)
		case !checkLabel(found, key, "node", name):
		case slices.Contains(reserved, name):
			found.report(key, "choose another name", "a node cannot be called %q: the word is reserved", name)
		case strings.Trim(name, "0123456789") == "":
			found.report(key, fmt.Sprintf("add a letter: \"n%s\"", name),
				"node name %q is a number: it would be read as an address", name)
		}
		seen[name] = true
	}
}

const (
	minID = 1
	maxID = 999_999 // a release number in front of it gives a guest's number
)

func checkIDs(ix *index, found *findings) {
	first := make(map[int]*site.Node, len(ix.Nodes))
	for n := range each(ix.Nodes) {
		if first[n.ID] == nil {
			first[n.ID] = n
		}
	}
	// An id that was proposed for one node is not free for another.
	proposed := map[int]bool{}
	next := minID
	free := func(from int) int {
		for next = max(next, from); first[next] != nil || proposed[next]; next++ {
		}
		proposed[next] = true
		return next
	}
	for n := range each(ix.Nodes) {
		if first[n.ID] == n && minID <= n.ID && n.ID <= maxID {
			continue
		}
		key := atNode(n, "id")
		switch other := first[n.ID]; {
		case n.ID == 0:
			vacant := free(minID)
			found.add(Issue{
				Key: key, What: fmt.Sprintf("node %s has no id", n.Name), Cure: fmt.Sprintf("id = %d is free", vacant),
				Written: fmt.Sprintf("id 0 of node %s is out of range: ids are %d to %d", n.Name, minID, maxID),
			})
		case n.ID < minID || n.ID > maxID:
			found.report(key, fmt.Sprintf("%d to %d; %d is free", minID, maxID, free(minID)), "id %d is out of range", n.ID)
		case other != n:
			found.reportConflict(key, atNode(other, "id"), fmt.Sprintf("%d is free", free(n.ID)),
				"id %d of node %s is already the id of node %s", n.ID, n.Name, other.Name)
		}
	}
}

// ValidLabel reports whether a name is a legal name for a site or node: a host name of one label (RFC
// 1123). Capital letters are not allowed, because host names are case-insensitive. Label uses no
// regular expression, because every command calls it and would have to compile the expression.
func ValidLabel(name string) bool {
	if len(name) < 1 || len(name) > 63 || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) < 0
}

// ValidFileName reports whether a name is a legal name for a file or directory, such as that of a secret or
// volume.
func ValidFileName(name string) bool { return fileNamePattern().MatchString(name) }
