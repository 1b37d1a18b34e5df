package report

import (
	"strings"
	"unicode/utf8"

	"orrery/internal/text/pattern"
)

// A grid is a table of texts. All columns except the first are numbers and are right-aligned.
type grid struct {
	Head []string
	Rows [][]string
}

func (g *grid) add(cells ...string) { g.Rows = append(g.Rows, cells) }

// padded applies change to each cell of the head and the rows and then pads it to the width of its
// column.
func (g *grid) padded(change func(string) string) [][]string {
	var lines [][]string
	widths := make([]int, len(g.Head))
	for _, row := range append([][]string{g.Head}, g.Rows...) {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = change(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		for i, cell := range line {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if line[i] = space + cell; i == 0 {
				line[i] = cell + space
			}
		}
	}
	return lines
}

// Text returns the table for a terminal.
func (g *grid) Text() string {
	var b strings.Builder
	for _, line := range g.padded(func(cell string) string { return cell }) {
		b.WriteString(strings.TrimRight(strings.Join(line, "  "), " ") + "\n")
	}
	return b.String()
}

// Markdown returns the table as Markdown that is also readable as plain text.
func (g *grid) Markdown() string {
	var b strings.Builder
	for n, line := range g.padded(escapeMarkdown) {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if n > 0 {
			continue
		}
		for i, cell := range line {
			dashes := strings.Repeat("-", utf8.RuneCountInString(cell)+1)
			if i == 0 {
				b.WriteString("|" + dashes + "-")
			} else {
				b.WriteString("|" + dashes + ":")
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}

var (
	syntax = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\n", " ", "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[",
		`\[`, "]", `\]`, "&", "&amp;", "@", `\@`)
	scheme = pattern.New(`([A-Za-z][A-Za-z0-9+.-]*):(\S)`)
	www    = pattern.New(`(?i)(www)\.`)
)

// escapeMarkdown escapes text for Markdown. The result has no markup, no HTML and no links, not even links
// that Markdown readers create from bare addresses.
func escapeMarkdown(text string) string {
	return www().ReplaceAllString(scheme().ReplaceAllString(syntax.Replace(text), `$1\:$2`), `$1\.`)
}
