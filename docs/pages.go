// Package docs has the reference pages that the program and its manual show.
package docs

import (
	_ "embed"
	"strings"
)

// The reference pages, in Markdown.
var (
	//go:embed site-file.md
	SiteFile string
	//go:embed roles.md
	Roles string
	//go:embed commands.md
	Commands string
)

// Section returns a section of a page: its heading and what follows, up to the next heading of the
// same or a higher level. It returns "" if the page has no such heading.
func Section(page, heading string) string {
	var out strings.Builder
	level, code := 0, false
	for line := range strings.Lines(page) {
		code = code != strings.HasPrefix(line, "```")
		at := 0
		if !code && strings.HasPrefix(line, "#") {
			at = len(line) - len(strings.TrimLeft(line, "#"))
		}
		switch {
		case level == 0 && at > 0 && strings.TrimSpace(line[at:]) == heading:
			level = at
		case level > 0 && at > 0 && at <= level:
			return out.String()
		}
		if level > 0 {
			out.WriteString(line)
		}
	}
	return out.String()
}
