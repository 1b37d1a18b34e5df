package draft

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"orrery/internal/text/pattern"
	"orrery/internal/text/sanitize"
)

// iniHeader matches a section: [group], [group:vars] or [group:children].
var iniHeader = pattern.New(`^\[([^\[\]:]+)(?::(vars|children|hosts))?\](?:\s*#.*)?$`)

// readINI reads an inventory in INI. Package ini cannot: its lines are words of a shell.
func (v *inventory) readINI(file string, text []byte) {
	text, err := sanitize.StripBOM(text)
	if err != nil {
		v.mistake(file, 1, "this is not an inventory: %v", err)
		return
	}
	group, kind, number := v.group(groupUngrouped, 0), "", 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if m := iniHeader().FindStringSubmatch(line); m != nil {
			group, kind = v.group(m[1], number), m[2]
			continue
		}
		switch kind {
		case "vars":
			name, value, ok := strings.Cut(line, "=")
			if !ok {
				v.mistake(file, number, "%s is not NAME=VALUE", quotedComment(line))
				return
			}
			v.addVar(&group.vars, "group "+group.name, strings.TrimSpace(name), strings.TrimSpace(value), number)
		case "children":
			child, _, _ := strings.Cut(line, " ")
			v.group(child, number)
			group.children = append(group.children, child)
		default:
			v.hostLine(file, number, group, line)
		}
		if v.wrong != nil {
			return
		}
	}
}

func (v *inventory) hostLine(file string, number int, group *ansibleGroup, line string) {
	words, ok := shellWords(line)
	if !ok || len(words) == 0 || strings.Contains(words[0], "=") {
		v.mistake(file, number, "%s is not a host with NAME=VALUE", quotedComment(line))
		return
	}
	name := words[0]
	if i := strings.LastIndexByte(name, ':'); i > 0 && strings.Count(name, ":") == 1 && !strings.Contains(name, "[") {
		v.lose(number, "host "+name, "orrery inventory says how to reach nodes")
		name = name[:i]
	}
	for _, h := range v.addHosts(file, number, name) {
		group.hosts = append(group.hosts, h.name)
		for _, word := range words[1:] {
			key, value, ok := strings.Cut(word, "=")
			if !ok {
				v.mistake(file, number, "%s is not NAME=VALUE", quotedComment(word))
				return
			}
			v.addVar(&h.vars, "host "+h.name, key, value, number)
		}
	}
}

// addVar adds a variable of an inventory in INI, whose numbers and booleans are those of Python.
func (v *inventory) addVar(to *[]variable, of, name, value string, line int) {
	if v.values++; v.values > maxYAMLValues {
		v.mistake(v.file, line, "more than %d variables, those of ranges counted for each host", maxYAMLValues)
		return
	}
	n := yaml.Node{Kind: yaml.ScalarNode, Value: strings.Trim(value, `"'`), Line: line}
	switch {
	case value == "True" || value == "False":
		n.Tag, n.Value = "!!bool", strings.ToLower(value)
	case pythonNumber().MatchString(value):
		n.Tag = "!!int"
	default:
		n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle // "yes" is a text in INI
	}
	text, why := scalarTOML(&n)
	if why != "" {
		v.lose(line, of+": "+name, "%s", why)
		return
	}
	*to = append(*to, variable{name, text, line})
}

// pythonNumber matches a number without leading zeros, which has the same meaning everywhere.
var pythonNumber = pattern.New(`^-?(?:0|[1-9][0-9]{0,17})$`)

// shellWords splits a line at spaces outside of quotes, up to a comment. It returns false if a quote
// does not end.
func shellWords(line string) (words []string, ok bool) {
	var word strings.Builder
	quote, inWord := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == '#' && !inWord:
			return words, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// readYAML reads an inventory in YAML.
func (v *inventory) readYAML(file string, text []byte) error {
	d, err := parseYAML(file, text)
	if err != nil {
		return err
	}
	top := d.pairs(d.root)
	if top == nil {
		d.mistake(d.root.Line, "this is not an inventory: no groups")
	}
	for _, p := range top {
		v.yamlGroup(d, p, 0)
	}
	if d.wrong != nil {
		return d.wrong
	}
	return nil
}

func (v *inventory) yamlGroup(d *document, p pair, depth int) {
	if depth > maxYAMLDepth {
		d.mistake(p.line, "groups are nested more than %d levels deep", maxYAMLDepth)
		return
	}
	g := v.group(p.key, p.line)
	for _, part := range d.pairs(p.value) {
		if d.wrong != nil || v.wrong != nil {
			return
		}
		switch part.key {
		case "hosts":
			for _, h := range d.pairs(part.value) {
				for _, host := range v.addHosts(d.name, h.line, h.key) {
					g.hosts = append(g.hosts, host.name)
					v.yamlVars(d, &host.vars, "host "+host.name, h.value)
				}
			}
		case "vars":
			v.yamlVars(d, &g.vars, "group "+g.name, part.value)
		case "children":
			for _, child := range d.pairs(part.value) {
				if g.name != groupAll {
					g.children = append(g.children, child.key)
				}
				v.yamlGroup(d, child, depth+1)
			}
		default:
			v.lose(part.line, "group "+p.key+": "+part.key, "not hosts, vars or children")
		}
	}
}

func (v *inventory) yamlVars(d *document, to *[]variable, of string, n *yaml.Node) {
	for _, p := range d.pairs(n) {
		text, why := d.toml(p.value, 0)
		if why == "" && len(text) > maxVariable {
			why = "too long for a variable"
		}
		if why != "" {
			v.lose(p.line, of+": "+p.key, "%s", why)
			continue
		}
		*to = append(*to, variable{p.key, text, p.line})
	}
}
