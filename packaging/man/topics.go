package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"

	"orrery/docs"
	"orrery/internal/text/pattern"
)

// A topic is a manual page about something other than a verb, made from the reference.
type topic struct{ name, section, short, text string }

// topics returns the pages about files, templates and statuses.
func topics() []topic {
	templates := docs.Section(docs.Roles, "Templates")
	step := docs.Section(docs.Roles, "What a step sees")
	role := strings.Replace(strings.Replace(docs.Roles, templates, "", 1), step, "", 1)
	return []topic{
		{"orrery-site", "5", "the site file of Orrery, site.toml", docs.SiteFile},
		{"orrery-role", "5", "the files of a role of Orrery, role.toml", role},
		{"orrery-templates", "7", "templates and steps of roles of Orrery", templates + step},
		{"orrery-exit", "7", "exit statuses of Orrery", docs.Section(docs.Commands, "Exit status")},
	}
}

// writeTopics writes the pages of all topics.
func writeTopics(source, date, share string) error {
	var err error
	for _, t := range topics() {
		page := `.TH "` + strings.ToUpper(t.name) + `" "` + t.section + `" "` + date + `" "` + source + `" ""` + "\n" +
			".SH NAME\n" + t.name + ` \- ` + t.short + "\n" + body(t.text) +
			".SH SEE ALSO\n.BR orrery (1),\n" + others(t.name)
		err = errors.Join(err, os.WriteFile(filepath.Join(share, "man"+t.section, t.name+"."+t.section), []byte(page), 0o644))
	}
	return err
}

// files is the section that names the files of Orrery.
const files = `.SH FILES
.TP
.I site.toml
the site file, see
.BR orrery-site (5)
.TP
.I roles/NAME/role.toml
a role, see
.BR orrery-role (5)
.TP
.I /var/lib/orrery
layers, nodes, volumes, snapshots, releases, secrets and journals of this host
.TP
.I /run/orrery
locks, and what nodes see of secrets, in memory
.TP
.I /var/cache/orrery
digests of imported images
`

// generalSections adds to the page of orrery itself what holds for all verbs.
func generalSections(page string) string {
	const seeAlso = ".SH SEE ALSO\n"
	before, after, _ := strings.Cut(page, seeAlso)
	_, environment, _ := strings.Cut(docs.Section(docs.Commands, "Environment"), "\n")
	return before + ".SH EXIT STATUS\nSee\n.BR orrery-exit (7).\n.SH ENVIRONMENT\n" + body(environment) +
		files + seeAlso + others("") + ".PP\n" + after
}

// others lists the pages of the other topics.
func others(name string) string {
	var all []string
	for _, t := range topics() {
		if t.name != name {
			all = append(all, ".BR "+t.name+" ("+t.section+")")
		}
	}
	return strings.Join(all, ",\n") + "\n"
}

// body turns Markdown into the text of a page. Links become their words, because a page of the
// documentation has no address in a manual.
func body(text string) string {
	text = title().ReplaceAllString(text, "## Description")
	text = lists(link().ReplaceAllString(text, "$1"))
	// The renderer takes headings of the first two levels for the page's title and its sections.
	page := string(md2man.Render([]byte(text)))
	page = preamble().ReplaceAllString(page, "")
	page = section().ReplaceAllStringFunc(page, strings.ToUpper)
	return wrapped(squeezed(page))
}

// lists turns tables into lists, because a table with sentences is wider than most terminals. The
// first column is the term. A short column after it goes into parentheses.
func lists(text string) string {
	var out strings.Builder
	row := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			row = 0
			out.WriteString(line)
			continue
		}
		if row++; row <= 2 { // its heading
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		term, rest := cells[0], cells[1:]
		if len(rest) > 1 && len(rest[0]) <= maxKind {
			if rest[0] != "" {
				term += " (" + rest[0] + ")"
			}
			rest = rest[1:]
		}
		out.WriteString(term + "\n: " + strings.Join(rest, ". ") + "\n\n")
	}
	return out.String()
}

// maxKind is the length of a column, in bytes, that fits into the parentheses of a term.
const maxKind = 20

// squeezed removes empty lines, except those of examples.
func squeezed(page string) string {
	var out strings.Builder
	example := false
	for line := range strings.Lines(page) {
		example = strings.HasPrefix(line, ".EX") || example && !strings.HasPrefix(line, ".EE")
		if example || strings.TrimSpace(line) != "" {
			out.WriteString(line)
		}
	}
	return out.String()
}

var (
	title    = pattern.New(`\A##? .*`)
	link     = pattern.New(`\[([^\]]+)\]\([^)\s]+\)`)
	section  = pattern.New(`(?m)^\.SH .*$`)
	preamble = pattern.New(`(?m)^(\.nh|\.TH.*)$\n?`)
)
