package check

import (
	"fmt"
	"maps"
	"slices"

	"orrery/internal/site"
)

// maxRelease is limited because the number of a guest, a release number and an id, has at most nine
// digits (Proxmox).
const maxRelease = 9999

func checkReleases(ix *index, found *findings) {
	for _, r := range ix.Releases {
		key := at("release", r.Number)
		if r.Number < 1 || r.Number > maxRelease {
			found.report(key, "1 to 9999", "release number %d is out of range", r.Number)
		}
		if r.Image != "" {
			checkImageName(ix, found, at("release", r.Number, "image"), r.Image)
		}
		checkSubstitutes(ix, found, r)
	}
}

// checkSubstitutes checks the roles that a release uses instead of others. A replacement role must
// not be replaced itself. Otherwise the content of the release would depend on the order of the
// replacements.
func checkSubstitutes(ix *index, found *findings, r site.Release) {
	for _, old := range slices.Sorted(maps.Keys(r.Roles)) {
		key, other := at("release", r.Number, "roles", old), r.Roles[old]
		switch next, chained := r.Roles[other]; {
		case ix.roleByName[old] == nil:
			addUnknownRole(ix, found, key, old)
		case ix.roleByName[other] == nil:
			addUnknownRole(ix, found, key, other)
		case other == old:
			found.report(key, "remove it", "role %s is replaced by itself", old)
		case chained && next == old:
			found.report(key, "remove one of them", "roles %s and %s replace one another", old, other)
		case chained:
			found.report(key, fmt.Sprintf("write %q here, or remove the other", next),
				"role %s is replaced by %s, which is itself replaced by %s", old, other, next)
		}
	}
}

// checkNumbers finds nodes that would have the same number on a host that runs several releases. It
// does not compare all pairs of nodes and releases. As long as ids have at most three digits, all
// numbers differ.
func checkNumbers(ix *index, found *findings) {
	nodes := make(map[int]*site.Node, len(ix.Nodes))
	leading := map[span][]*site.Node{} // nodes with longer ids, by their leading digits
	for n := range each(ix.Nodes) {
		if n.ID < minID || n.ID > maxID || nodes[n.ID] != nil {
			continue
		}
		nodes[n.ID] = n
		for digits, rest := 1, ends(n.ID)/10; rest >= 1000; digits, rest = digits+1, rest/10 {
			leading[span{digits, n.ID / rest}] = append(leading[span{digits, n.ID / rest}], n)
		}
	}
	releases := map[int]bool{}
	for _, r := range ix.Releases {
		releases[r.Number] = true
	}
	for n := range each(ix.Nodes) {
		checkPlainNumber(found, n, releases, nodes)
	}
	for _, r := range ix.Releases {
		for digits, rest := 1, 10; r.Number/rest > 0; digits, rest = digits+1, rest*10 {
			if !releases[r.Number/rest] {
				continue
			}
			for _, n := range leading[span{digits, r.Number % rest}] {
				id := n.ID % (ends(n.ID) / rest)
				if other := nodes[id]; other != nil && site.FullID(r.Number, id) == site.FullID(r.Number/rest, n.ID) {
					addSameNumber(found, n, r.Number/rest, other, r.Number)
				}
			}
		}
	}
}

// A span is a number with a fixed count of digits, including leading zeros.
type span struct{ digits, number int }

// ends returns the smallest power of ten that is greater than id, but at least 1000.
func ends(id int) int { return site.FullID(1, id) - id }

// checkPlainNumber reports a node without a release whose id is the number of a node of a release.
func checkPlainNumber(found *findings, n *site.Node, releases map[int]bool, nodes map[int]*site.Node) {
	for rest := 1000; n.ID/rest > 0; rest *= 10 {
		if other := nodes[n.ID%rest]; other != nil && releases[n.ID/rest] && site.FullID(n.ID/rest, other.ID) == n.ID {
			addSameNumber(found, n, 0, other, n.ID/rest)
		}
	}
}

func addSameNumber(found *findings, n *site.Node, release int, other *site.Node, others int) {
	of := ""
	if release != 0 {
		of = fmt.Sprintf(" of release %d", release)
	}
	found.reportConflict(atNode(n, "id"), at("release", others),
		"choose an id of at most three digits, or release numbers of equal length",
		"node %s%s has the same number %d as node %s of release %d", n.Name, of, site.FullID(release, n.ID), other.Name,
		others)
}
