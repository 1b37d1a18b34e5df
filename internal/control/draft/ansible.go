package draft

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/pattern"
)

// An inventory is what an inventory of Ansible says, in either of its forms.
type inventory struct {
	conversion
	hosts  map[string]*ansibleHost
	order  []*ansibleHost
	groups map[string]*ansibleGroup
	values int              // variables of all hosts, each host of a range counted
	wrong  *problem.Problem // the first mistake
}

type ansibleHost struct {
	name string // as in the inventory
	line int
	vars []variable
}

type ansibleGroup struct {
	name     string
	line     int
	hosts    []string
	children []string
	vars     []variable
	depth    int
}

// A variable is a variable of a host or group. Its value is TOML.
type variable struct {
	name, value string
	line        int
}

// Ansible's own groups: of all hosts, and of those in no other group.
const (
	groupAll       = "all"
	groupUngrouped = "ungrouped"
)

// ImportAnsible writes a site directory from an inventory of Ansible, in INI or YAML. Each host becomes
// a node. It returns the paths of its files.
func ImportAnsible(dir, name, file string) (made *sitefile.Imported, paths []string, err error) {
	text, err := readSource(file)
	if err != nil {
		return nil, nil, err
	}
	v := &inventory{hosts: map[string]*ansibleHost{}, groups: map[string]*ansibleGroup{}}
	if v.conversion, err = newConversion(dir, name, file); err != nil {
		return nil, nil, err
	}
	if isYAML(file, text) {
		err = v.readYAML(file, text)
	} else {
		v.readINI(file, text)
	}
	if err != nil {
		return nil, nil, err
	}
	siteText := v.siteText()
	switch {
	case v.wrong != nil:
		return nil, nil, v.wrong
	case len(v.order) == 0:
		return nil, nil, problem.New(problem.Mistake, "the inventory has no hosts").At(file)
	}
	paths, err = v.write(siteText)
	return &v.Imported, paths, err
}

// yamlStart matches a file that begins as an inventory in YAML does, as Ansible decides by trying.
var yamlStart = pattern.New(`^(?:\s*(?:#[^\n]*)?\n)*(?:---|[A-Za-z0-9_.-]+:[ \t]*(?:#[^\n]*)?\n)`)

func isYAML(file string, text []byte) bool {
	return strings.HasSuffix(file, ".yml") || strings.HasSuffix(file, ".yaml") || yamlStart().Match(text)
}

func (v *inventory) mistake(file string, line int, format string, args ...any) {
	if v.wrong == nil {
		v.wrong = problem.New(problem.Mistake, format, args...).At(fmt.Sprintf("%s:%d", file, line))
	}
}

// host returns the host with a name, which may be new.
func (v *inventory) host(name string, line int) *ansibleHost {
	h := v.hosts[name]
	if h == nil {
		h = &ansibleHost{name: name, line: line}
		v.hosts[name], v.order = h, append(v.order, h)
	}
	return h
}

// group returns the group with a name, which may be new.
func (v *inventory) group(name string, line int) *ansibleGroup {
	g := v.groups[name]
	if g == nil {
		g = &ansibleGroup{name: name, line: line}
		v.groups[name] = g
	}
	return g
}

// siteText returns the site file.
func (v *inventory) siteText() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Imported from %s, an inventory of Ansible. Each host is a node without roles.\n"+
		"[site]\nname = %s\n", v.file, sitefile.Quote(v.Site))
	groups := v.sorted()
	if all := v.groups[groupAll]; all != nil {
		v.writeVars(&out, "group all", all.vars)
	}
	subnet := subnetFor(v.Site, len(v.order), takenSubnets())
	fmt.Fprintf(&out, "\n[network.lan]\nsubnet = %s\ngateway = %s\nnat = true\n\n[image.debian]\nsuite = \"bookworm\"\n"+
		"packages = [\"python3\"] # Ansible's modules need it\n",
		sitefile.Quote(subnet.String()), sitefile.Quote(subnet.Addr().Next().String()))
	taken, nodes := sitefile.Names{}, map[string]string{}
	for i, h := range v.order {
		node := sitefile.ValidName(sitefile.ShortName(h.name), taken)
		nodes[h.name] = node
		fmt.Fprintf(&out, "\n[node.%s]", node)
		if node != h.name {
			fmt.Fprintf(&out, " # %s", quotedComment(h.name))
		}
		fmt.Fprintf(&out, "\nid = %d\n", firstID+i)
		v.writeVars(&out, "host "+h.name, h.vars)
	}
	named, namedGroups := sitefile.Names{}, map[string]string{}
	for _, g := range groups {
		namedGroups[g.name] = sitefile.ValidName(g.name, named)
	}
	for _, g := range groups {
		v.writeGroup(&out, g, nodes, namedGroups)
	}
	v.ToDo = append(v.ToDo, "playbooks stay as they are: orrery inventory is their inventory then "+
		"(docs/howto/ssh-ansible.md); what they install is faster in roles")
	return out.String()
}

// quotedComment returns a name as it can stand in a comment.
func quotedComment(name string) string {
	return strings.Trim(sitefile.Quote(problem.Truncate(name, 100)), `"`)
}

func (v *inventory) writeGroup(out *strings.Builder, g *ansibleGroup, nodes, groups map[string]string) {
	var members, children []string
	for _, name := range g.hosts {
		members = append(members, nodes[name])
	}
	for _, name := range g.children {
		if child := groups[name]; child != "" && name != g.name {
			children = append(children, child)
		}
	}
	fmt.Fprintf(out, "\n[group.%s]\n", groups[g.name])
	if groups[g.name] != g.name {
		v.lose(g.line, "group "+g.name, "it is called %s in the site", groups[g.name])
	}
	if len(members) > 0 {
		slices.Sort(members)
		fmt.Fprintf(out, "nodes = %s\n", sitefile.QuoteList(slices.Compact(members)))
	}
	if len(children) > 0 {
		slices.Sort(children)
		fmt.Fprintf(out, "groups = %s\n", sitefile.QuoteList(slices.Compact(children)))
	}
	v.writeVars(out, "group "+g.name, g.vars)
}

// sorted returns the groups in the order in which their variables are merged: parents before children,
// so that a child's replace its parents', then by name.
func (v *inventory) sorted() (groups []*ansibleGroup) {
	for range maxYAMLDepth {
		for _, g := range v.groups {
			for _, name := range g.children {
				if c := v.groups[name]; c != nil && c.depth <= g.depth && g.depth < maxYAMLDepth {
					c.depth = g.depth + 1
				}
			}
		}
	}
	for _, g := range v.groups {
		if g.depth >= maxYAMLDepth {
			v.mistake(v.file, g.line, "group %s is a child of itself, or nested more than %d levels deep",
				quotedComment(g.name), maxYAMLDepth)
		}
		if g.name != groupAll && g.name != groupUngrouped {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b *ansibleGroup) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.name, b.name))
	})
	return groups
}

// writeVars writes variables. Those of Ansible itself, which say how it reaches a host, are named as
// lost: orrery inventory writes them.
func (v *inventory) writeVars(out *strings.Builder, of string, vars []variable) {
	last := map[string]int{}
	for i, one := range vars {
		if before, twice := last[one.name]; twice {
			v.lose(vars[before].line, of+": "+one.name, "set again in line %d", one.line)
		}
		last[one.name] = i
	}
	for i, one := range vars {
		switch {
		case last[one.name] != i:
		case strings.HasPrefix(one.name, "ansible_"):
			v.lose(one.line, of+": "+one.name, "nodes have names and addresses of their own, and orrery inventory says how "+
				"to reach them")
		case !envName().MatchString(one.name) || len(one.name) > 60:
			v.lose(one.line, of+": "+one.name, "not a name that a template can use")
		default:
			fmt.Fprintf(out, "vars.%s = %s\n", one.name, one.value)
		}
	}
}

// hostRange matches a range in the name of a host, such as [01:50], [1:9:2] or [a:f].
var hostRange = pattern.New(`\[([0-9]{1,6}|[a-z]):([0-9]{1,6}|[a-z])(?::([0-9]{1,4}))?\]`)

// expand returns the hosts that a name with ranges means, or false if they are too many or none.
func expand(name string) (all []string, ok bool) {
	all = []string{""}
	rest := name
	for {
		at := hostRange().FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		m := hostRange().FindStringSubmatch(rest)
		words := rangeWords(m[1], m[2], m[3])
		if len(words) == 0 || len(all)*len(words) > maxConverted {
			return nil, false
		}
		var next []string
		for _, before := range all {
			for _, word := range words {
				next = append(next, before+rest[:at[0]]+word)
			}
		}
		all, rest = next, rest[at[1]:]
	}
	for i := range all {
		all[i] += rest
	}
	return all, !strings.ContainsAny(rest, "[]")
}

func rangeWords(from, to, stride string) (words []string) {
	step := 1
	if stride != "" {
		step, _ = strconv.Atoi(stride)
	}
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	letters := err != nil && err2 != nil
	if letters {
		first, last = int(from[0]), int(to[0])
	}
	if step < 1 || (err == nil) != (err2 == nil) || last-first > maxConverted*step {
		return nil
	}
	for i := first; i <= last; i += step {
		if letters {
			words = append(words, string(rune(i)))
			continue
		}
		word := strconv.Itoa(i)
		if from[0] == '0' && len(from) > 1 { // the width of the first one
			word = fmt.Sprintf("%0*d", len(from), i)
		}
		words = append(words, word)
	}
	return words
}

// addHosts adds the hosts that a name means, and returns them.
func (v *inventory) addHosts(file string, line int, name string) (hosts []*ansibleHost) {
	names, ok := expand(name)
	if !ok || name == "" || len(v.order)+len(names) > maxConverted {
		v.mistake(file, line, "%s is not the name of a host, or of up to %d hosts",
			quotedComment(name), maxConverted)
		return nil
	}
	for _, one := range names {
		hosts = append(hosts, v.host(one, line))
	}
	return hosts
}
