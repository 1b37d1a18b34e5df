package check

import (
	"fmt"
	"regexp"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// pinned is a line of a requirements file as it should be, less its hashes: NAME==VERSION, with extras and marker.
var pinned = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*={2,3}\s*[^\s;,*=<>!~]+\s*(?:;.*)?$`)

var pythonPackage = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9._,\s-]*\])?$`)

// options may stand on a line of their own: they choose among files of the same version.
var options = []string{"--require-hashes", "--only-binary", "--no-binary", "--prefer-binary"}

// normal gives a Python package's name as packaging.python.org's name normalization has it.
func normal(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

var separators = regexp.MustCompile(`[-_.]+`)

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

// A requirement is a line of a requirements file, continued lines joined.
type requirement struct {
	line   int
	text   string // without hashes and comment
	hashed bool
}

func requirementsIn(text string) []requirement {
	var all []requirement
	var joined strings.Builder
	first, number := 0, 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if first == 0 {
			first = number
		}
		if head, continued := strings.CutSuffix(line, "\\"); continued {
			joined.WriteString(head)
			joined.WriteByte(' ')
			continue
		}
		joined.WriteString(line)
		whole := joined.String()
		if i := strings.Index(" "+whole, " #"); i >= 0 {
			whole = whole[:i]
		}
		requirement := requirement{line: first}
		requirement.text, requirement.hashed = cutHashes(whole)
		if requirement.text != "" {
			all = append(all, requirement)
		}
		joined.Reset()
		first = 0
	}
	return all
}

func cutHashes(text string) (string, bool) {
	head, _, hashed := strings.Cut(text, "--hash")
	return strings.TrimSpace(head), hashed
}

func (c *checker) pins(r site.Requirements) {
	all := requirementsIn(r.Text)
	hashed := false
	for _, q := range all {
		hashed = hashed || q.hashed
	}
	first := map[string]int{}
	for _, q := range all {
		key := at("requirements", r.File, q.line)
		word, _, _ := strings.Cut(strings.ReplaceAll(q.text, "=", " "), " ")
		m := pinned.FindStringSubmatch(q.text)
		switch {
		case strings.HasPrefix(word, "-"):
			c.option(key, word, q.text)
		case m == nil:
			c.unpinned(key, q.text)
		case first[normal(m[1])] != 0 && !strings.Contains(q.text, ";"):
			c.wrong(key, "take one of them out", "%s is already pinned in line %d", m[1], first[normal(m[1])])
		case hashed && !q.hashed:
			c.wrong(key, "add --hash=sha256:… or take all hashes out", "%s has no hash, and other packages here have: pip wants all or none", m[1])
		}
		if m != nil {
			first[normal(m[1])] = q.line
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

func (c *checker) unpinned(key []string, text string) {
	name := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("=<>!~;@[( \t,", r) })
	cure := "write NAME==VERSION"
	if len(name) > 0 {
		cure = fmt.Sprintf("write %s==VERSION; `pip freeze` tells which", name[0])
	}
	c.wrong(key, cure, "%q is not pinned to one version", text)
}

// pips checks that the requirements of a node pin what its roles have pip install.
func (c *checker) pips() {
	pins := map[string]map[string]bool{}
	done := map[string]bool{}
	for i := range c.site.Nodes {
		n := &c.site.Nodes[i]
		key := n.Requirements.File + "\x00" + strings.Join(n.Roles, "\x00")
		if done[key] {
			continue
		}
		done[key] = true
		pinsOf, known := pins[n.Requirements.File]
		if !known {
			pinsOf = map[string]bool{}
			for _, q := range requirementsIn(n.Requirements.Text) {
				if m := pinned.FindStringSubmatch(q.text); m != nil {
					pinsOf[normal(m[1])] = true
				}
			}
			pins[n.Requirements.File] = pinsOf
		}
		for _, r := range c.rolesOf(n.Roles) {
			for k, name := range r.Pip {
				if file := n.Requirements.File; file != "" && pythonPackage.MatchString(name) {
					c.pip(at("role", r.Name, "pip", k), name, file, pinsOf)
				}
			}
		}
	}
	for i := range c.site.Roles {
		r := &c.site.Roles[i]
		for k, name := range r.Pip {
			if !pythonPackage.MatchString(name) {
				c.wrong(at("role", r.Name, "pip", k), "a name only; its version is pinned in the requirements file", "%q is no name of a Python package", name)
			}
		}
	}
}

func (c *checker) pip(key []string, name, file string, pins map[string]bool) {
	bare := pythonPackage.FindStringSubmatch(name)[1]
	if pins[normal(bare)] {
		return
	}
	known := make([]string, 0, len(pins))
	for other := range pins {
		known = append(known, other)
	}
	cure := fmt.Sprintf("add %s==VERSION to it", bare)
	if nearest := problem.Nearest(normal(bare), known); nearest != "" {
		cure = fmt.Sprintf("did you mean %q? Otherwise %s", nearest, cure)
	}
	c.wrong(key, cure, "Python package %q is not in %s", name, file)
}
