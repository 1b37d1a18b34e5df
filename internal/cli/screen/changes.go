package screen

import (
	"fmt"
	"io"
	"strings"

	"orrery/internal/plan/diff"
	"orrery/internal/text/humanize"
)

// maxTitles is the maximum number of names above what has changed.
const maxTitles = 8

// Changes prints how something changes, once for all that change in the same way.
func Changes(w io.Writer, all []diff.Change) {
	var order []string
	titles := map[string][]string{}
	lines := map[string][]string{}
	for _, c := range all {
		text := strings.Join(c.Lines, "\n")
		if titles[text] == nil {
			order = append(order, text)
		}
		titles[text], lines[text] = append(titles[text], c.Title), c.Lines
	}
	for _, text := range order {
		fmt.Fprintf(w, "%s:\n", humanize.List(titles[text], maxTitles))
		printDiff(w, lines[text])
		fmt.Fprintln(w)
	}
}

// printDiff prints lines of a diff, in colours.
func printDiff(w io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprint(w, "  ")
		switch {
		case strings.HasPrefix(line, "+"):
			Paint(w, line, Good)
		case strings.HasPrefix(line, "-"):
			Paint(w, line, Bad)
		case strings.HasPrefix(line, "@@"):
			Paint(w, line, Faint)
		default:
			fmt.Fprint(w, line)
		}
		fmt.Fprintln(w)
	}
}
