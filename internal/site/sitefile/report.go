package sitefile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site/check"
	"orrery/internal/strict"
)

// A report collects mistakes and knows the position of each key.
type report struct {
	mistakes problem.List
	roots    map[string]*strict.Node    // by file: site.toml, roles/NAME/role.toml
	nodes    map[string]*strict.Node    // by name, including those that a range declares
	shared   map[string]string          // directories of the roles that are not the site's own, for messages
	units    map[[2]string]*strict.Node // by role and name, because a service has one of two forms
	bad      map[*strict.Node]bool      // places with a mistake, which the rules need not check
	meant    map[suggestedKey]bool
	// told has the mistakes reported for a place, because every node of a range may have the same
	// one.
	told    map[*strict.Node][]string
	more    map[string]int     // number of suppressed mistakes, by place
	removed map[string]removal // from a site file that is extended, by name
}

// A removal is an entry of remove with the name of a table or node.
type removal struct{ kind, place string }

// maxMistakes limits the number of reported mistakes. More of them usually have a common cause.
const maxMistakes = 1000

// full reports whether the limit is reached and further mistakes are not reported.
func (r *report) full() bool { return len(r.mistakes) > maxMistakes }

// maxPerPlace limits the mistakes reported for one place.
const maxPerPlace = 5

// A suggestedKey is a known key that an unknown one was probably meant to be. Its absence is not
// reported as a separate mistake.
type suggestedKey struct {
	table *strict.Node
	key   string
}

func newReport() *report {
	return &report{
		shared: map[string]string{},
		roots:  map[string]*strict.Node{}, nodes: map[string]*strict.Node{}, units: map[[2]string]*strict.Node{},
		bad: map[*strict.Node]bool{}, meant: map[suggestedKey]bool{}, told: map[*strict.Node][]string{},
		more: map[string]int{}, removed: map[string]removal{},
	}
}

func (r *report) add(p *problem.Problem) {
	switch len(r.mistakes) - maxMistakes {
	case 0:
		p = mistake("more than %d mistakes: the others are not shown", maxMistakes).At(p.Where).
			Try("fix these first")
	case 1:
		return
	}
	p.What, p.Cure = problem.Truncate(p.What, 2000), problem.Truncate(p.Cure, 2000)
	r.mistakes = append(r.mistakes, p)
}

// addAt adds a mistake at a position in a file.
func (r *report) addAt(file string, at *strict.Node, p *problem.Problem) {
	r.bad[at] = true
	r.add(p.At(where(file, at)))
}

// roleDir returns the directory of a role, for messages.
func (r *report) roleDir(role string) string { return cmp.Or(r.shared[role], "roles/"+role) }

// roleFile returns the role.toml of a role, for messages.
func (r *report) roleFile(role string) string { return r.roleDir(role) + "/" + roleFileName }

func (r *report) misspelt(table *strict.Node, key string) { r.meant[suggestedKey{table, key}] = true }

func where(file string, at *strict.Node) string {
	return fmt.Sprintf("%s:%d", cmp.Or(at.File, file), at.Line)
}

// addIssue adds a mistake from package check, unless it is only a consequence of a mistake that was
// already reported.
func (r *report) addIssue(m check.Issue) {
	if r.full() {
		return
	}
	file, at, rest := r.locate(m.Key)
	if at == nil {
		r.add(mistake("%s", m.What).At(file).Try("%s", m.Cure))
		return
	}
	if len(rest) == 0 && m.Written != "" {
		m.What = m.Written
	}
	if r.bad[at] || len(rest) > 0 && r.meant[suggestedKey{at, rest[0]}] {
		return
	}
	switch {
	case slices.Contains(r.told[at], m.What): // from another node of the range
		return
	case len(r.told[at]) == maxPerPlace:
		r.more[where(file, at)]++
		return
	}
	r.told[at] = append(r.told[at], m.What)
	p := mistake("%s", m.What).At(where(file, at)).Try("%s", r.cureFor(m.What, at, m.Cure))
	if len(m.Other) > 0 {
		if otherFile, other, _ := r.locate(m.Other); other != nil && other != at {
			p.What += " (" + where(otherFile, other) + ")"
		}
	}
	r.add(p)
}

// cureFor returns the cure of a mistake that follows from the whole site. If the value is in a file that
// the site file extends, the site file can override it. If it names what the site file removes, the cure says so.
func (r *report) cureFor(what string, at *strict.Node, cure string) string {
	for i, word := range strings.Split(what, `"`) {
		switch gone, ok := r.removed[word]; {
		case i%2 == 0 || !ok || !strings.Contains(what, gone.kind):
		case at.File == "":
			return gone.place + " removes it: delete that entry or this name"
		default:
			return gone.place + " removes it: override this value in " + Name + " too"
		}
	}
	if at.File == "" {
		return cure
	}
	switch {
	case cure == "":
		return "override it in " + Name
	case strings.HasSuffix(cure, "?"):
		return cure + " Otherwise override it in " + Name
	}
	return cure + "; or override it in " + Name
}

// locate returns the position of a key of the model. If the key is not written in a file, it
// returns the position of the nearest enclosing key, and the rest of the key.
func (r *report) locate(key []string) (file string, at *strict.Node, rest []string) {
	switch {
	case len(key) == 4 && key[2] == "unit" && r.units[[2]string{key[1], key[3]}] != nil:
		return r.roleFile(key[1]), r.units[[2]string{key[1], key[3]}], nil
	case key[0] == "settings": // [role.NAME] of the site file, and not a role
		file, at, rest = Name, r.roots[Name], append([]string{"role"}, key[1:]...)
	case len(key) >= 2 && key[0] == "role":
		file = r.roleFile(key[1])
		at, rest = r.roots[file], key[2:]
	case len(key) == 3 && key[0] == "requirements":
		line, _ := strconv.Atoi(key[2])
		return key[1], &strict.Node{Line: line}, nil
	case len(key) >= 2 && key[0] == "node" && r.nodes[key[1]] != nil:
		file, at, rest = Name, r.nodes[key[1]], key[2:]
		if len(rest) > 0 && at.Keys[rest[0]] == nil && !r.meant[suggestedKey{at, rest[0]}] {
			// Settings that the node's table lacks come from [defaults].
			if inherited, n := r.roots[Name].Find("defaults", rest[0]); n == 2 {
				return Name, inherited, nil
			}
		}
	default:
		file, at, rest = Name, r.roots[Name], key
	}
	if at == nil {
		return file, nil, rest
	}
	found, n := at.Find(rest...)
	return file, found, rest[n:]
}

// list returns the mistakes sorted by file and line, without duplicates.
func (r *report) list() problem.List {
	type lined struct {
		*problem.Problem
		file string
		line int
	}
	var all []lined
	seen := map[string]bool{}
	for _, place := range slices.Sorted(maps.Keys(r.more)) {
		r.mistakes = append(r.mistakes, mistake("and %d more like these", r.more[place]).At(place))
	}
	for _, p := range r.mistakes {
		if text := p.Error(); !seen[text] {
			seen[text] = true
			file, number, _ := strings.Cut(p.Where, ":")
			line, _ := strconv.Atoi(number)
			if file == Name {
				file = "" // sorts first
			}
			all = append(all, lined{p, file, line})
		}
	}
	slices.SortStableFunc(all, func(a, b lined) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	var list problem.List
	for _, p := range all {
		list = append(list, p.Problem)
	}
	return list
}
