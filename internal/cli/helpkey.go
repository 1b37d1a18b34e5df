package cli

import (
	"slices"
	"strings"

	"orrery/docs"
	"orrery/internal/text/pattern"
)

// A keyEntry is one key of the examples in the reference, with the comments that explain it.
type keyEntry struct {
	file  string   // "site.toml" or "role.toml"
	table []string // of the key: kind and name ("node", "portal") or kind; nil at the top of role.toml
	list  bool     // the table is one of many: [[step]]
	key   []string // "net", "cam"; nil for the heading of the table itself
	text  string   // the lines, with line breaks
}

// keyLine matches the line of a key, perhaps one that is commented out because it excludes another.
var keyLine = pattern.New(`^(?:# (?:or: )?)?([a-z_][a-z0-9_.]*) *=`)

// tableLine matches the heading of a table: its kind, its name, and the first part of its keys.
var tableLine = pattern.New(`^(\[\[?)([a-z]+)(?:\.([a-z0-9_]+|"[^"]*"))?(?:\.([a-z_]+))?\]`)

// keyHelp returns what the reference says of a key, or of a table with its keys. The name of a
// node, network or the like may be any, or missing: network.lan.nat and network.nat are the same.
// keyHelp returns "" if there is no such key.
func keyHelp(name string) string {
	want := strings.Split(strings.TrimSuffix(name, "."), ".")
	var out strings.Builder
	title, seen := "", map[string]bool{}
	for _, e := range slices.Concat(keyEntries("site.toml", docs.SiteFile), keyEntries("role.toml", docs.Roles)) {
		name := e.heading() + strings.Join(e.key, ".")
		if !e.matches(want) || seen[name] && !strings.Contains(e.text, "#") {
			continue
		}
		seen[name] = true
		if heading := e.heading(); heading != title {
			if title != "" {
				out.WriteString("\n")
			}
			title = heading
			out.WriteString(title + "\n\n")
		}
		out.WriteString(e.text)
	}
	return out.String()
}

// heading says where a key belongs.
func (e *keyEntry) heading() string {
	switch {
	case e.table == nil:
		return "In " + e.file + ", before all tables:"
	case e.list:
		return "In " + e.file + ", in each [[" + e.table[0] + "]]:"
	case len(e.table) > 1:
		return "In " + e.file + ", in [" + e.table[0] + ".NAME]:"
	}
	return "In " + e.file + ", in [" + e.table[0] + "]:"
}

// matches reports whether the entry is the wanted key or belongs to the wanted table.
func (e *keyEntry) matches(want []string) bool {
	if len(e.table) > 0 {
		if want[0] != e.table[0] {
			return false
		}
		want = want[1:]
		if e.isOf(want) {
			return true
		}
		if len(e.table) < 2 || len(want) == 0 {
			return false
		}
		want = want[1:] // the name
	}
	return e.isOf(want)
}

// isOf reports whether the rest of a wanted name, after its table, is the entry's key. All keys are
// of an empty rest. A key of free names, such as net.cam, is also found by another name.
func (e *keyEntry) isOf(rest []string) bool {
	if len(e.table) == 0 && len(rest) == 0 {
		return false
	}
	return len(rest) == 0 || len(e.key) > 0 && rest[0] == e.key[0] &&
		(len(rest) == 1 || slices.Equal(rest, e.key) || len(rest) == 2 && len(e.key) == 2 && e.freelyNamed())
}

// freelyNamed reports whether the second part of the key is a name that the site chooses.
func (e *keyEntry) freelyNamed() bool {
	return slices.Contains([]string{"net", "interface", "ipv6"}, e.key[0])
}

// keyEntries returns the keys in the examples of a page. An entry is a key's line and what follows
// up to the next key, table or empty line.
func keyEntries(file, page string) []keyEntry {
	var all []keyEntry
	var table, prefix []string
	list, code, text := false, false, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code, table, prefix, list = strings.HasPrefix(line, "```toml"), nil, nil, false
			continue
		}
		if !code {
			continue
		}
		continues := text
		text = text != (strings.Count(line, `"""`)%2 == 1)
		heading, key := tableLine().FindStringSubmatch(line), keyLine().FindStringSubmatch(line)
		switch {
		case continues:
			all[len(all)-1].text += line
		case heading != nil:
			table, prefix, list = nonEmpty(heading[2:4]), nonEmpty(heading[4:]), heading[1] == "[["
			all = append(all, keyEntry{file, table, list, prefix, line})
		case key != nil:
			all = append(all, keyEntry{file, table, list, slices.Concat(prefix, strings.Split(key[1], ".")), line})
		case strings.HasPrefix(line, " ") && len(all) > 0:
			all[len(all)-1].text += line
		}
	}
	return all
}

// nonEmpty returns the words that are not empty.
func nonEmpty(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
}
