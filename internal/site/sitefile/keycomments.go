package sitefile

import (
	"strings"

	"orrery/internal/text/pattern"
)

// A keyComment is the comment on a key or table in an example of the reference.
type keyComment struct {
	path []string
	text string
}

var (
	// tableHeading matches [kind.name], and [[kind]].
	tableHeading = pattern.New(`^\[\[?([a-z_]+(?:\.(?:[A-Za-z0-9_-]+|"[^"]*"))*)\]\]?`)
	// keyOf matches the key of a line, also of one that is a comment because it excludes another.
	keyOf = pattern.New(`^(?:# (?:or: )?)?([a-z_][A-Za-z0-9_.-]*) *=`)
	link  = pattern.New(`\[([^\]]*)\]\([^)]*\)`)
)

// keyComments returns the comments in the TOML examples of a page.
func keyComments(page string) []keyComment {
	var all []keyComment
	var table []string
	code, text := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			code, table, text = strings.TrimSpace(line) == "```toml", nil, false
			continue
		}
		inside := text
		text = text != (strings.Count(line, `"""`)%2 == 1)
		if !code || inside {
			continue
		}
		said := commentOf(line)
		heading, key := tableHeading().FindStringSubmatch(line), keyOf().FindStringSubmatch(line)
		switch {
		case heading != nil:
			table = splitKey(heading[1])
			all = append(all, keyComment{table, said})
		case key != nil:
			all = append(all, keyComment{append(table[:len(table):len(table)], splitKey(key[1])...), said})
		case strings.HasPrefix(line, " ") && len(all) > 0 && strings.HasPrefix(strings.TrimSpace(line), "#"):
			all[len(all)-1].text += " " + said
		}
	}
	kept := all[:0]
	for _, c := range all {
		if c.text = strings.TrimSpace(link().ReplaceAllString(c.text, "$1")); c.text != "" {
			kept = append(kept, c)
		}
	}
	return kept
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
