package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/pins"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// options may stand on a line of their own: they choose among files of the same version.
var options = []string{"--require-hashes", "--only-binary", "--no-binary", "--prefer-binary"}

// requirements checks each requirements file once.
func (c *checker) requirements() {
	seen := map[string]bool{}
	one := func(r site.Requirements) {
		if r.File != "" && !seen[r.File] {
			seen[r.File] = true
			c.pins(r)
		}
	}
	for i := range c.site.Nodes {
		one(c.site.Nodes[i].Requirements)
	}
	for _, r := range c.site.Releases {
		one(r.Requirements)
	}
}

func (c *checker) pins(r site.Requirements) {
	all := pins.Lines(r.Text)
	hashed := pins.Hashed(all)
	first := map[string]int{}
	for _, l := range all {
		key := at("requirements", r.File, l.Number)
		word, _, _ := strings.Cut(strings.ReplaceAll(l.Text, "=", " "), " ")
		if l.Pin == nil {
			if strings.HasPrefix(word, "-") {
				c.option(key, word, l.Text)
			} else {
				c.unpinned(key, l)
			}
			continue
		}
		name := pins.Normal(l.Pin.Name)
		switch {
		case first[name] != 0 && l.Pin.Always():
			c.wrong(key, "take one of them out", "%s is already pinned in line %d", l.Pin.Name, first[name])
		case hashed && !l.Hashed:
			c.wrong(key, "add --hash=sha256:… or take all hashes out", "%s has no hash, and other packages here have: pip wants all or none", l.Pin.Name)
		}
		if !l.Pin.Never() {
			first[name] = l.Number
		}
	}
}

func (c *checker) option(key []string, word, text string) {
	for _, allowed := range options {
		if word == allowed {
			return
		}
	}
	cure := "take it out"
	switch word {
	case "-r", "--requirement", "-c", "--constraint":
		cure = "copy the lines of that file here"
	case "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host":
		cure = "say mirror.pypi in site.toml"
	case "-e", "--editable":
		cure = "build a wheel and put it in the index"
	}
	c.wrong(key, cure, "%q cannot stand in a requirements file here", text)
}

func (c *checker) unpinned(key []string, l pins.Line) {
	text := l.Text
	name := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("=<>!~;@[( \t,", r) })
	cure := "write NAME==VERSION"
	if len(name) > 0 {
		cure = fmt.Sprintf("write %s==VERSION; `pip freeze` tells which", name[0])
	}
	switch l.Wrong {
	case pins.Extras:
		cure = "write names with commas between them, such as [socks,security]"
	case pins.Marker:
		cure = `write one such as python_version >= "3.11"; PEP 508 says which there are`
	}
	if strings.Contains(text, "#") {
		cure = "write a space before the #, or it begins no comment"
	}
	if l.Wrong != "" {
		c.wrong(key, cure, "%q has %s that pip cannot read", text, l.Wrong)
		return
	}
	c.wrong(key, cure, "%q is not pinned to one version", text)
}

// pips checks that the requirements of a node pin what its roles have pip install.
func (c *checker) pips() {
	files := map[string]map[string]*pins.Pin{}
	done := map[string]bool{}
	for i := range c.site.Nodes {
		n := &c.site.Nodes[i]
		key := n.Requirements.File + "\x00" + strings.Join(n.Roles, "\x00")
		if done[key] {
			continue
		}
		done[key] = true
		pinned, known := files[n.Requirements.File]
		if !known {
			pinned = map[string]*pins.Pin{}
			for _, l := range pins.Lines(n.Requirements.Text) {
				if l.Pin == nil {
					continue
				}
				name := pins.Normal(l.Pin.Name)
				if has := pinned[name]; has == nil || has.Never() {
					pinned[name] = l.Pin
				}
			}
			files[n.Requirements.File] = pinned
		}
		for _, r := range c.rolesOf(n.Roles) {
			for k, name := range r.Pip {
				if file := n.Requirements.File; file != "" && pins.Package().MatchString(name) {
					c.pip(at("role", r.Name, "pip", k), name, file, pinned)
				}
			}
		}
	}
	for i := range c.site.Roles {
		r := &c.site.Roles[i]
		for k, name := range r.Pip {
			if !pins.Package().MatchString(name) {
				c.wrong(at("role", r.Name, "pip", k), "a name only; its version is pinned in the requirements file", "%q is no name of a Python package", name)
			}
		}
	}
}

func (c *checker) pip(key []string, name, file string, pinned map[string]*pins.Pin) {
	bare := pins.Package().FindStringSubmatch(name)[1]
	is := pinned[pins.Normal(bare)]
	if is != nil && is.Never() {
		c.wrong(key, fmt.Sprintf("add %s==VERSION to it, without a marker or with one that holds in nodes", bare),
			"Python package %q is in %s for other systems only: %s", name, file, is.Marker)
	}
	if is != nil {
		return
	}
	cure := fmt.Sprintf("add %s==VERSION to it", bare)
	if nearest := problem.Nearest(pins.Normal(bare), slices.Sorted(maps.Keys(pinned))); nearest != "" {
		cure = fmt.Sprintf("did you mean %q? Otherwise %s", nearest, cure)
	}
	c.wrong(key, cure, "Python package %q is not in %s", name, file)
}
