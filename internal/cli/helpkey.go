package cli

import (
	"slices"
	"strings"

	"orrery/docs"
)

// A keyEntry is a key of one of the files.
type keyEntry struct {
	docs.Key
	file string // "site.toml" or "role.toml"
}

// key returns the parts of the key, or nothing for the heading of a table.
func (e *keyEntry) key() []string { return e.Path[e.Table:] }

// keyHelp returns what the reference says of a key, or of a table with its keys. The name of a
// node, network or the like may be any, or missing: network.lan.nat and network.nat are the same.
// keyHelp returns "" if there is no such key.
func keyHelp(name string) string {
	want := strings.Split(strings.TrimSuffix(name, "."), ".")
	var out strings.Builder
	title, seen := "", map[string]bool{}
	for _, e := range slices.Concat(keyEntries("site.toml", docs.SiteFile), keyEntries("role.toml", docs.Roles)) {
		name := e.heading() + strings.Join(e.key(), ".")
		if !e.matches(want) || seen[name] && !strings.Contains(e.Text, "#") {
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
		out.WriteString(e.Text)
	}
	return out.String()
}

// heading says where a key belongs.
func (e *keyEntry) heading() string {
	switch {
	case e.Table == 0:
		return "In " + e.file + ", before all tables:"
	case e.List:
		return "In " + e.file + ", in each [[" + e.Path[0] + "]]:"
	case e.Table > 1:
		return "In " + e.file + ", in [" + e.Path[0] + ".NAME]:"
	}
	return "In " + e.file + ", in [" + e.Path[0] + "]:"
}

// matches reports whether the entry is the wanted key or belongs to the wanted table.
func (e *keyEntry) matches(want []string) bool {
	if e.Table > 0 {
		if want[0] != e.Path[0] {
			return false
		}
		want = want[1:]
		if e.isOf(want) {
			return true
		}
		if e.Table < 2 || len(want) == 0 {
			return false
		}
		want = want[1:] // the name
	}
	return e.isOf(want)
}

// isOf reports whether the rest of a wanted name, after its table, is the entry's key. All keys are
// of an empty rest. A key of free names, such as net.cam, is also found by another name.
func (e *keyEntry) isOf(rest []string) bool {
	if e.Table == 0 && len(rest) == 0 {
		return false
	}
	return len(rest) == 0 || !e.IsTable() && rest[0] == e.key()[0] &&
		(len(rest) == 1 || slices.Equal(rest, e.key()) || len(rest) == 2 && len(e.key()) == 2 && e.freelyNamed())
}

// freelyNamed reports whether the second part of the key is a name that the site chooses.
func (e *keyEntry) freelyNamed() bool {
	return slices.Contains([]string{"net", "interface", "ipv6"}, e.key()[0])
}

// keyEntries returns the keys in the examples of a page.
func keyEntries(file, page string) []keyEntry {
	var all []keyEntry
	for _, k := range docs.Keys(page) {
		all = append(all, keyEntry{k, file})
	}
	return all
}
