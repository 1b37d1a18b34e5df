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
	all := slices.Concat(keyEntries("site.toml", docs.SiteFile), keyEntries("role.toml", docs.Roles))
	want := strings.Split(strings.TrimSuffix(name, "."), ".")
	for _, matches := range []func(*keyEntry) bool{
		func(e *keyEntry) bool { return e.isKey(want) },
		func(e *keyEntry) bool {
			return e.Table > 1 && len(want) > 1 && e.isKey(slices.Delete(slices.Clone(want), 1, 2))
		},
		func(e *keyEntry) bool { return e.Table > 0 && len(want) <= e.Table && want[0] == e.Path[0] },
	} {
		if text := shown(all, matches); text != "" {
			return text
		}
	}
	return ""
}

// shown returns the entries that match, below where they belong. A key comes once, unless another
// example explains it, too.
func shown(all []keyEntry, matches func(*keyEntry) bool) string {
	var out strings.Builder
	title, seen := "", map[string]bool{}
	for _, e := range all {
		name := e.heading() + strings.Join(e.key(), ".")
		if !matches(&e) || seen[name] && !strings.Contains(e.Text, "#") {
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

// heading returns the file and the table to which a key belongs, for display.
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

// isKey reports whether a wanted name without the name of a table is the entry's key. A key of free
// names, such as net.cam, is also found by its first part, or by another name.
func (e *keyEntry) isKey(want []string) bool {
	key := e.key()
	if e.Table > 0 {
		if want[0] != e.Path[0] {
			return false
		}
		want = want[1:]
	}
	return len(want) > 0 && len(key) > 0 && want[0] == key[0] &&
		(len(want) == 1 || slices.Equal(want, key) || len(want) == 2 && len(key) == 2 && e.freelyNamed())
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
