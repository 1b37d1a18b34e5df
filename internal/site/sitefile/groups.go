package sitefile

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/strict"
)

// groups determines the nodes of each group. The model contains only the result, so mistakes in the
// declarations of groups are reported here.
func (l *loader) groups() {
	m := membership{loader: l, tables: map[string]*strict.Named[groupTable]{}, members: map[string]map[string]bool{},
		nodes: map[string]bool{}}
	for i := range l.site.Nodes {
		m.nodes[l.site.Nodes[i].Name] = true
		m.names = append(m.names, l.site.Nodes[i].Name)
	}
	for i := range l.file.Groups {
		t := &l.file.Groups[i]
		m.tables[t.Name] = t
		m.groups = append(m.groups, t.Name)
	}
	groupsOf, keysOf := map[string][]string{}, map[string][]string{}
	for _, name := range m.groups {
		g := site.Group{Name: name, Batch: site.Batch(m.tables[name].Value.Batch), Spread: m.tables[name].Value.Spread,
			Vars: m.tables[name].Value.Vars, Settings: m.tables[name].Value.Settings}
		members := m.nodesOf(name, nil)
		keys := l.publicKeys(m.tables[name].At.Keys["authorized_keys"], m.tables[name].Value.AuthorizedKeys)
		if !m.spendComparisons(len(m.names), m.tables[name]) {
			return
		}
		for _, node := range m.names { // in order of id
			if members[node] {
				g.Nodes = append(g.Nodes, node)
				groupsOf[node] = append(groupsOf[node], name)
				if len(keys) > 0 {
					keysOf[node] = addKeys(keysOf[node], keys)
				}
			}
		}
		if l.parts += len(g.Nodes) * (1 + len(keys)); l.parts > maxParts {
			l.report.addAt(Name, m.tables[name].At, tooManyParts())
			return
		}
		l.site.Groups = append(l.site.Groups, g)
	}
	for i := range l.site.Nodes {
		n := &l.site.Nodes[i]
		n.Groups = groupsOf[n.Name]
		slices.Sort(n.Groups)
		n.AuthorizedKeys = addKeys(n.AuthorizedKeys, keysOf[n.Name])
	}
}

type membership struct {
	loader  *loader
	names   []string // of the nodes, in order of id
	nodes   map[string]bool
	groups  []string // in the order of the file
	tables  map[string]*strict.Named[groupTable]
	members map[string]map[string]bool // group → nodes, filled in on demand
	sought  int                        // number of slow searches for the nearest name
	looked  int                        // number of names compared, see maxComparisons
	deep    bool                       // exceeded maxComparisons
}

// maxComparisons limits the time to determine the members of all groups. It is enough for 200 groups of
// all nodes of the largest site.
const maxComparisons = 200 * maxNodes

// spendComparisons counts names as comparisons for a group and reports whether the limit allows them.
func (m *membership) spendComparisons(names int, t *strict.Named[groupTable]) bool {
	if m.looked += names; m.looked > maxComparisons && !m.deep {
		m.deep = true
		m.loader.report.addAt(Name, t.At,
			mistake("the groups take too long to evaluate").Try("use fewer groups, or fewer groups in each"))
	}
	return !m.deep
}

// nodesOf returns the nodes of a group. Argument path has the groups that led to it.
func (m *membership) nodesOf(group string, path []string) map[string]bool {
	if members, done := m.members[group]; done {
		return members
	}
	t := m.tables[group]
	members := map[string]bool{}
	for i, pattern := range t.Value.Nodes {
		if !m.nodes[pattern] && !m.spendComparisons(len(m.names), t) {
			return members
		}
		if !m.addMatches(pattern, members) {
			at, _ := t.At.Find("nodes", strconv.Itoa(i))
			m.reportUnknown(at, "no node is called %q", "no node matches %q", pattern, m.names)
		}
	}
	path = append(path, group)
	for i, other := range t.Value.Groups {
		at, _ := t.At.Find("groups", strconv.Itoa(i))
		if _, known := m.tables[other]; !known {
			m.reportUnknown(at, "no group is called %q", "no group is called %q", other, m.groups)
			continue
		}
		if k := slices.Index(path, other); k >= 0 {
			m.loader.report.addAt(Name, at, mistake("groups contain one another: %s",
				strings.Join(append(path[k:], other), " → ")).
				Try("remove one of them"))
			continue
		}
		more := m.nodesOf(other, path)
		if !m.spendComparisons(len(more)+len(path), t) {
			return members
		}
		for node := range more {
			members[node] = true
		}
	}
	m.members[group] = members
	return members
}

// addMatches adds the nodes that match a name or glob to a set. It reports whether there are any.
func (m *membership) addMatches(pattern string, to map[string]bool) bool {
	if m.nodes[pattern] {
		to[pattern] = true
		return true
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		return false
	}
	found := false
	for _, name := range m.names {
		if ok, _ := path.Match(pattern, name); ok {
			to[name], found = true, true
		}
	}
	return found
}

func (m *membership) reportUnknown(at *strict.Node, what, ofGlob, name string, known []string) {
	if strings.ContainsAny(name, `*?[\`) {
		what = ofGlob
	}
	if m.sought++; m.sought > 100 {
		known = nil
	}
	p := mistake(what, name)
	m.loader.report.addAt(Name, at, p.Try("%s",
		m.loader.report.cureFor(p.What, at, problem.SuggestOr(name, known, "declare it or remove it"))))
}
