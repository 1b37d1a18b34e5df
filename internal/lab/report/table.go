package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A grid is a table of text; all columns but the first are numbers, and stand to the right.
type grid struct {
	head []string
	rows [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// widths are those of the columns, in characters.
func (g *grid) widths() []int {
	w := make([]int, len(g.head))
	for _, row := range append([][]string{g.head}, g.rows...) {
		for i, cell := range row {
			w[i] = max(w[i], utf8.RuneCountInString(cell))
		}
	}
	return w
}

// plain writes the table for a terminal.
func (g *grid) plain(w io.Writer) {
	widths := g.widths()
	for _, row := range append([][]string{g.head}, g.rows...) {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(pad(cell, widths[i], i > 0))
			line.WriteString("  ")
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// markdown writes the table for Markdown, and readable as it is.
func (g *grid) markdown(w io.Writer) {
	widths := g.widths()
	line := func(row []string) {
		for i, cell := range row {
			fmt.Fprint(w, "| ", pad(cell, widths[i], i > 0), " ")
		}
		fmt.Fprintln(w, "|")
	}
	escaped := grid{head: escape(g.head)}
	for _, row := range g.rows {
		escaped.rows = append(escaped.rows, escape(row))
	}
	widths = escaped.widths()
	line(escaped.head)
	for i, n := range widths {
		if i == 0 {
			fmt.Fprint(w, "|", strings.Repeat("-", n+2))
		} else {
			fmt.Fprint(w, "|", strings.Repeat("-", n+1), ":")
		}
	}
	fmt.Fprintln(w, "|")
	for _, row := range escaped.rows {
		line(row)
	}
}

func pad(text string, width int, right bool) string {
	space := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if right {
		return space + text
	}
	return text + space
}

// escape keeps what was measured or printed from being taken for Markdown.
func escape(cells []string) []string {
	all := make([]string, len(cells))
	for i, c := range cells {
		all[i] = marked.Replace(c)
	}
	return all
}

// marked makes text plain where Markdown is read: it cannot mark anything, begin HTML, or become a link, neither a written one nor one that
// readers make of addresses by themselves.
var marked plainly

type plainly struct{}

var (
	syntax = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\n", " ", "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`, "]", `\]`, "&", "&amp;", "@", `\@`)
	scheme = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*):(\S)`)
	www    = regexp.MustCompile(`(?i)(www)\.`)
)

func (plainly) Replace(text string) string {
	return www.ReplaceAllString(scheme.ReplaceAllString(syntax.Replace(text), `$1\:$2`), `$1\.`)
}
