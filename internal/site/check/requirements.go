package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/pins"
)

// options may have a line of their own. They choose among files of the same version.
var options = []string{"--require-hashes", "--only-binary", "--no-binary", "--prefer-binary"}

// checkRequirements checks each requirements file once.
func checkRequirements(ix *index, found *findings) {
	seen := map[string]bool{}
	one := func(r site.Requirements) {
		if r.File != "" && !seen[r.File] {
			seen[r.File] = true
			checkPins(found, r)
		}
	}
	for n := range each(ix.Nodes) {
		one(n.Requirements)
	}
	for _, r := range ix.Releases {
		one(r.Requirements)
	}
}

func checkPins(found *findings, r site.Requirements) {
	all := pins.Lines(r.Text)
	hashed := pins.Hashed(all)
	first := map[string]int{}
	for _, l := range all {
		key := at("requirements", r.File, l.Number)
		word, _, _ := strings.Cut(strings.ReplaceAll(l.Text, "=", " "), " ")
		if l.Pin == nil {
			if strings.HasPrefix(word, "-") {
				checkOption(found, key, word, l.Text)
			} else {
				addUnpinned(found, key, l)
			}
			continue
		}
		name := pins.Normal(l.Pin.Name)
		switch {
		case first[name] != 0 && l.Pin.Always():
			found.report(key, "remove one of them", "%s is already pinned in line %d", l.Pin.Name, first[name])
		case hashed && !l.Hashed:
			found.report(key, "add --hash=sha256:… or remove all hashes",
				"%s has no hash but other packages have: pip requires all or none", l.Pin.Name)
		}
		if !l.Pin.Never() {
			first[name] = l.Number
		}
	}
}

func checkOption(found *findings, key []string, word, text string) {
	if slices.Contains(options, word) {
		return
	}
	cure := "remove it"
	switch word {
	case "-r", "--requirement", "-c", "--constraint":
		cure = "copy the lines of that file here"
	case "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host":
		cure = "set mirror.pypi in site.toml"
	case "-e", "--editable":
		cure = "build a wheel and put it in the index"
	}
	found.report(key, cure, "%q is not allowed in a requirements file", text)
}

func addUnpinned(found *findings, key []string, l pins.Line) {
	text := l.Text
	name := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("=<>!~;@[( \t,", r) })
	cure := "write NAME==VERSION"
	if len(name) > 0 {
		cure = fmt.Sprintf("write %s==VERSION; `pip freeze` prints the version", name[0])
	}
	switch l.Wrong {
	case pins.Extras:
		cure = "write names with commas between them, such as [socks,security]"
	case pins.Marker:
		cure = `write one such as python_version >= "3.11"; PEP 508 lists them`
	}
	if strings.Contains(text, "#") {
		cure = "write a space before the # to begin a comment"
	}
	if l.Wrong != "" {
		found.report(key, cure, "%q has %s that pip cannot read", text, l.Wrong)
		return
	}
	found.report(key, cure, "%q is not pinned to one version", text)
}

// checkPips checks that a node's requirements pin the packages that pip installs for its roles.
func checkPips(ix *index, found *findings) {
	files := map[string]map[string]*pins.Pin{}
	done := map[string]bool{}
	for n := range each(ix.Nodes) {
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
				if old := pinned[name]; old == nil || old.Never() {
					pinned[name] = l.Pin
				}
			}
			files[n.Requirements.File] = pinned
		}
		for _, r := range ix.rolesOf(n.Roles) {
			for k, name := range r.Pip {
				if file := n.Requirements.File; file != "" && pins.Package().MatchString(name) {
					checkPip(found, at("role", r.Name, "pip", k), name, file, pinned)
				}
			}
		}
	}
	for r := range each(ix.Roles) {
		for k, name := range r.Pip {
			if !pins.Package().MatchString(name) {
				found.report(at("role", r.Name, "pip", k),
					"write the name only; the requirements file pins its version",
					"%q is not the name of a Python package", name)
			}
		}
	}
}

func checkPip(found *findings, key []string, name, file string, pinned map[string]*pins.Pin) {
	bare := pins.Package().FindStringSubmatch(name)[1]
	pin := pinned[pins.Normal(bare)]
	if pin != nil && pin.Never() {
		found.report(key, fmt.Sprintf("add %s==VERSION to it, without a marker or with one that is true in nodes",
			bare),
			"Python package %q is in %s for other systems only: %s", name, file, pin.Marker)
	}
	if pin != nil {
		return
	}
	cure := fmt.Sprintf("add %s==VERSION to it", bare)
	if nearest := problem.Suggest(pins.Normal(bare), slices.Sorted(maps.Keys(pinned))); nearest != "" {
		cure = fmt.Sprintf("did you mean %q? Otherwise %s", nearest, cure)
	}
	found.report(key, cure, "Python package %q is not in %s", name, file)
}
