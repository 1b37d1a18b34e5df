package draft

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/sanitize"
)

// The limits of a YAML file. Each value counts every time it is read, so that a small file with
// aliases of aliases cannot mean a large one.
const (
	maxYAMLValues = 200_000
	maxYAMLDepth  = 32
)

// A document is a YAML file that is being read. It is read as nodes and not into values, because
// nodes have lines, and the library does not expand their aliases.
type document struct {
	name  string // as messages have it
	root  *yaml.Node
	left  int              // values that may still be read
	wrong *problem.Problem // the first mistake
}

// A pair is a key of a mapping with its value.
type pair struct {
	key   string
	line  int
	value *yaml.Node
}

// parseYAML parses the first document of a file.
func parseYAML(name string, text []byte) (*document, error) {
	text, err := sanitize.StripBOM(text)
	if err != nil {
		return nil, problem.New(problem.Mistake, "this is not YAML: %v", err).At(name + ":1")
	}
	var root yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := decoder.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, problem.New(problem.Mistake, "the file is empty").At(name)
		}
		return nil, problem.New(problem.Mistake, "this is not YAML: %s", sanitize.Line(err.Error())).At(name)
	}
	d := &document{name: name, root: &root, left: maxYAMLValues}
	if len(root.Content) > 0 {
		d.root = root.Content[0]
	}
	return d, nil
}

// mistake records the first mistake of the file.
func (d *document) mistake(line int, format string, args ...any) {
	if d.wrong == nil {
		d.wrong = problem.New(problem.Mistake, format, args...).At(fmt.Sprintf("%s:%d", d.name, line))
	}
}

// follow returns what an alias stands for, or nil if the file means too much.
func (d *document) follow(n *yaml.Node) *yaml.Node {
	for n != nil {
		if d.left--; d.left < 0 {
			d.mistake(n.Line, "the file has more than %d values, aliases included", maxYAMLValues)
			return nil
		}
		if n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return nil
}

// pairs returns the keys of a mapping in the order of the file, those of merged mappings ("<<") last.
// It returns nil if n is no mapping.
func (d *document) pairs(n *yaml.Node) []pair { return d.merged(n, 0) }

func (d *document) merged(n *yaml.Node, depth int) (all []pair) {
	if n = d.follow(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	if depth > maxYAMLDepth {
		d.mistake(n.Line, "mappings are merged more than %d levels deep", maxYAMLDepth)
		return nil
	}
	seen := map[string]int{}
	var later []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := d.follow(n.Content[i]), n.Content[i+1]
		switch {
		case key == nil:
			return nil
		case key.Kind != yaml.ScalarNode:
			d.mistake(key.Line, "a key is not a word")
		case key.Value == "<<":
			later = append(later, d.mergedBy(value)...)
		case seen[key.Value] != 0:
			d.mistake(key.Line, "%s is set twice, first in line %d", sanitize.Line(problem.Truncate(key.Value, 60)),
				seen[key.Value])
		default:
			seen[key.Value] = key.Line
			all = append(all, pair{key.Value, key.Line, value})
		}
	}
	for _, from := range later {
		for _, p := range d.merged(from, depth+1) {
			if seen[p.key] == 0 {
				seen[p.key] = p.line
				all = append(all, p)
			}
		}
	}
	return all
}

// mergedBy returns the mappings that a merge key names: one, or a list of them.
func (d *document) mergedBy(n *yaml.Node) []*yaml.Node {
	if items := d.items(n); items != nil {
		return items
	}
	return []*yaml.Node{n}
}

// items returns the elements of a list, or nil if n is no list.
func (d *document) items(n *yaml.Node) []*yaml.Node {
	if n = d.follow(n); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// scalar returns the text of a scalar, or false if n is another value or null.
func (d *document) scalar(n *yaml.Node) (string, bool) {
	if n = d.follow(n); n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return "", false
	}
	return n.Value, true
}

// find returns the value of a key, or nil.
func find(all []pair, key string) *yaml.Node {
	if i := slices.IndexFunc(all, func(p pair) bool { return p.key == key }); i >= 0 {
		return all[i].value
	}
	return nil
}

// toml returns a value as TOML, or why that is not possible.
func (d *document) toml(n *yaml.Node, depth int) (text, why string) {
	if depth > maxYAMLDepth {
		return "", "nested too deep"
	}
	if n = d.follow(n); n == nil {
		return "", "the file has too many values"
	}
	switch n.Kind {
	case yaml.SequenceNode:
		parts := make([]string, len(n.Content))
		for i, item := range n.Content {
			if parts[i], why = d.toml(item, depth+1); why != "" {
				return "", why
			}
		}
		return "[" + strings.Join(parts, ", ") + "]", ""
	case yaml.MappingNode:
		var parts []string
		for _, p := range d.merged(n, depth) {
			value, why := d.toml(p.value, depth+1)
			if why != "" {
				return "", why
			}
			parts = append(parts, sitefile.Quote(p.key)+" = "+value)
		}
		return "{ " + strings.Join(parts, ", ") + " }", ""
	}
	return scalarTOML(n)
}

// maxVariable is how many bytes a variable may have.
const maxVariable = 8 << 10

// oldBool returns a boolean that only YAML 1.1 has, which Ansible reads.
func oldBool(n *yaml.Node) (text string, ok bool) {
	if n.Style != 0 || n.ShortTag() != "!!str" {
		return "", false
	}
	switch strings.ToLower(n.Value) {
	case "yes", "on":
		return "true", true
	case "no", "off":
		return "false", true
	}
	return "", false
}

func scalarTOML(n *yaml.Node) (text, why string) {
	switch tag := n.ShortTag(); {
	case len(n.Value) > maxVariable:
		return "", fmt.Sprintf("longer than %d bytes", maxVariable)
	case tag == "!!null":
		return "", "it has no value"
	case tag == "!!int":
		if i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			return strconv.FormatInt(i, 10), ""
		}
	case tag == "!!float":
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return tomlFloat(f), ""
		}
	case tag == "!!bool":
		var yes bool
		if n.Decode(&yes) == nil {
			return strconv.FormatBool(yes), ""
		}
	case tag == "!vault" || tag == "!vault-encrypted":
		return "", "encrypted: use a secret ([secret.NAME] in the site file)"
	case strings.Contains(n.Value, "{{"):
		return "", "a template, which is not evaluated"
	}
	if text, ok := oldBool(n); ok {
		return text, ""
	}
	return sitefile.Quote(n.Value), ""
}

// tomlFloat returns a number with a point, because 1 is another type than 1.0.
func tomlFloat(f float64) string {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
