package releases

import (
	"context"
	"maps"
	"slices"

	"orrery/internal/control"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Difference is how a node differs between two releases.
type Difference struct {
	Node     string   `json:"node"`
	Added    bool     `json:"added"`
	Removed  bool     `json:"removed"`
	Content  bool     `json:"content"` // the content of its layers differs
	Lines    []string `json:"lines"`   // how its settings and files differ
	Packages []Change `json:"packages"`
}

// A Change is a different version of a package, or "" for a release without the package.
type Change struct {
	Kind string `json:"kind"` // Debian or Python
	Name string `json:"name"`
	Was  string `json:"was,omitempty"`
	Is   string `json:"is,omitempty"`
}

// Same reports whether the node is the same in both releases.
func (d *Difference) Same() bool {
	return !d.Added && !d.Removed && !d.Content && len(d.Lines) == 0 && len(d.Packages) == 0
}

// Compare returns how the selected nodes differ between two releases. A caller who is not root learns
// nothing about settings and files, because the site directory may keep them from other users.
func Compare(ctx context.Context, c *control.Session, s *site.Site, numbers [2]int, selectors []string) ([]Difference,
	error) {
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	seen, err := c.Observe(ctx, f)
	if err != nil {
		return nil, err
	}
	var of [2][]Contents
	for i, number := range numbers {
		if of[i], err = show(ctx, f, s, seen, number, chosen); err != nil {
			return nil, err
		}
	}
	if c.Member != nil {
		return Differences(of[0], of[1], nil), nil
	}
	loaded := map[string]int{"former": numbers[0], "current": numbers[1]}
	if err := c.Connector(s).Releases(f).LoadReleases(ctx, loaded); err != nil {
		c.Trouble(s.Key(), err) // packages can be compared without the copies of the site directory
	}
	return Differences(of[0], of[1], Sources(c, s, f, seen, nil).Release), nil
}

// Differences returns how nodes differ between two releases. The nodes of the second release come
// first, in their order, then the nodes that only the first one has. Compared returns how the settings
// and files of a node differ, or is nil if they are not compared.
func Differences(former, current []Contents, compared func(old, desired *spec.Node) []string) []Difference {
	before := map[string]*Contents{}
	for i := range former {
		before[former[i].Node] = &former[i]
	}
	var all []Difference
	for i := range current {
		n := &current[i]
		if old := before[n.Node]; old != nil {
			d := difference(old, n)
			if compared != nil {
				d.Lines = compared(old.node, n.node)
			}
			all = append(all, d)
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
	d := Difference{Node: current.Node, Content: !slices.Equal(former.Content, current.Content)}
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
