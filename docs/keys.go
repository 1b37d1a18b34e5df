package docs

import (
	"slices"
	"strings"

	"orrery/internal/text/pattern"
)

// A Key is a key in an example of the reference, or the heading of a table.
type Key struct {
	Path    []string // of the table and the key: "node", "portal", "net", "cam"
	Table   int      // how many parts of the path are the kind and the name of the table
	List    bool     // the table is one of many: [[step]]
	Text    string   // its lines, with line breaks
	Comment string   // its comment as plain text, or ""
}

// IsTable reports whether the key is the heading of a table.
func (k *Key) IsTable() bool { return len(k.Path) == k.Table }

var (
	// tableHeading matches [kind.name] and [[kind]].
	tableHeading = pattern.New(`^(\[\[?)([a-z_]+(?:\.(?:[A-Za-z0-9_-]+|"[^"]*"))*)\]\]?`)
	// keyOf matches the key of a line, also of one that is a comment because it excludes another.
	keyOf = pattern.New(`^(?:# (?:or: )?)?([a-z_][A-Za-z0-9_.-]*) *=`)
	link  = pattern.New(`\[([^\]]*)\]\([^)]*\)`)
)

// Keys returns the keys in the TOML examples of a page, in their order. A key has its line and what
// follows up to the next key or empty line.
func Keys(page string) []Key {
	var all []Key
	var table []string
	list, code, text := false, false, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code, table, list, text = strings.TrimSpace(line) == "```toml", nil, false, false
			continue
		}
		if !code {
			continue
		}
		inside := text
		text = text != (strings.Count(line, `"""`)%2 == 1)
		heading, key := tableHeading().FindStringSubmatch(line), keyOf().FindStringSubmatch(line)
		switch {
		case inside:
			all[len(all)-1].Text += line
		case heading != nil:
			table, list = splitKey(heading[2]), heading[1] == "[["
			all = append(all, Key{table, min(2, len(table)), list, line, commentOf(line)})
		case key != nil:
			path := slices.Concat(table, splitKey(key[1]))
			all = append(all, Key{path, min(2, len(table)), list, line, commentOf(line)})
		case strings.HasPrefix(line, " ") && len(all) > 0:
			last := &all[len(all)-1]
			last.Text += line
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				last.Comment += " " + commentOf(line)
			}
		}
	}
	for i := range all {
		all[i].Comment = strings.TrimSpace(link().ReplaceAllString(all[i].Comment, "$1"))
	}
	return all
}

// splitKey splits a dotted key. Quoted names have no dots in the reference, except in ranges.
func splitKey(key string) []string {
	before, name, quoted := strings.Cut(key, `."`)
	parts := strings.Split(before, ".")
	if quoted {
		parts = append(parts, strings.TrimSuffix(name, `"`))
	}
	return parts
}

// commentOf returns the comment at the end of a line of TOML, without what stands before it.
func commentOf(line string) string {
	if rest, ok := strings.CutPrefix(line, "# "); ok { // a key that is a comment
		line = rest
	}
	quote := rune(0)
	for i, c := range line {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return strings.TrimSpace(line[i+1:])
		}
	}
	return ""
}
