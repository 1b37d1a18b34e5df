package releases

import (
	"maps"
	"slices"
)

// A Difference is how a node differs between two releases.
type Difference struct {
	Node           string
	Added, Removed bool
	Was, Is        []string // digests of its layers' content, if they differ
	Packages       []Change
}

// A Change is a different version of a package, or "" for a release without the package.
type Change struct {
	Kind    string // Debian or Python
	Name    string
	Was, Is string
}

// Same reports whether the node is the same in both releases.
func (d *Difference) Same() bool {
	return !d.Added && !d.Removed && d.Was == nil && d.Is == nil && len(d.Packages) == 0
}

// Differences returns how nodes differ between two releases. The nodes of the second release come
// first, in their order, then the nodes that only the first one has.
func Differences(former, current []Contents) []Difference {
	before := map[string]*Contents{}
	for i := range former {
		before[former[i].Node] = &former[i]
	}
	var all []Difference
	for i := range current {
		n := &current[i]
		if old := before[n.Node]; old != nil {
			all = append(all, difference(old, n))
		} else {
			all = append(all, Difference{Node: n.Node, Added: true})
		}
		delete(before, n.Node)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		all = append(all, Difference{Node: name, Removed: true})
	}
	return all
}

func difference(former, current *Contents) Difference {
	d := Difference{Node: current.Node}
	if !slices.Equal(former.Content, current.Content) {
		d.Was, d.Is = former.Content, current.Content
	}
	for _, kind := range []struct {
		name    string
		was, is map[string]string
	}{{"Debian", former.Packages, current.Packages}, {"Python", former.Python, current.Python}} {
		names := slices.Collect(maps.Keys(kind.was))
		names = slices.AppendSeq(names, maps.Keys(kind.is))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if before, after := kind.was[name], kind.is[name]; before != after {
				d.Packages = append(d.Packages, Change{kind.name, name, before, after})
			}
		}
	}
	return d
}
