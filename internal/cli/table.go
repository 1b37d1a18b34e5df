package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"orrery/internal/control"
	"orrery/internal/visible"
)

// A table shows nodes to a person, a line each. On a terminal no line is wider than that.
type table struct {
	out   io.Writer
	width int // columns; 0: any number
}

// widthOf gives how many columns a terminal has; 0: it is none.
func widthOf(w io.Writer) int {
	if f, ok := screen(w); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

func (t *table) show(rows []control.NodeStatus, usage bool) error {
	_, err := io.WriteString(t.out, strings.Join(t.lines(rows, usage, time.Now()), ""))
	return err
}

// lines gives the table, and below it what there is to say of single nodes, each line with its end.
func (t *table) lines(rows []control.NodeStatus, usage bool, now time.Time) []string {
	cells := [][]string{headings(rows, usage)}
	for _, r := range rows {
		cells = append(cells, row{r}.cells(cells[0], now))
	}
	var all []string
	for _, line := range fit(cells, t.width) {
		all = append(all, line+"\n")
	}
	for _, r := range rows {
		for _, text := range (row{r}).remarks() {
			all = append(all, cut(visible.Line(r.Node+": "+strings.ReplaceAll(text, "\n", " ")), t.width)+"\n")
		}
	}
	return all
}

// A row is one node in the table.
type row struct{ control.NodeStatus }

// remarks gives what there is to say of a node besides.
func (r row) remarks() []string {
	var all []string
	if r.Detail != "" {
		all = append(all, r.Detail)
	}
	for _, d := range r.Drift {
		all = append(all, d.String())
	}
	return all
}

func headings(rows []control.NodeStatus, usage bool) []string {
	all := []string{"NODE"}
	if !usage { // of which there is more to show than a small terminal has room for
		all = append(all, "ID", "HOST")
	}
	if slices.ContainsFunc(rows, func(r control.NodeStatus) bool { return r.Release != 0 || r.Quarantine }) {
		all = append(all, "RELEASE")
	}
	if usage {
		return append(all, "STATE", "HEALTH", "CPUS", "MEMORY/MiB", "PIDS", "DISK", "VOLUMES")
	}
	return append(all, "STATE", "HEALTH", "ADDRESSES", "ROLES")
}

func (r row) cells(headings []string, now time.Time) []string {
	var all []string
	for _, h := range headings {
		all = append(all, r.cell(h, now))
	}
	return all
}

func (r row) cell(heading string, now time.Time) string {
	switch heading {
	case "NODE":
		return r.Node
	case "ID":
		return strconv.Itoa(r.ID)
	case "HOST":
		return r.Host
	case "RELEASE":
		return standing(r.NodeStatus)
	case "STATE":
		return r.State
	case "HEALTH":
		if r.Usage != nil {
			return r.Health
		}
		return r.word(now)
	case "ADDRESSES":
		var all []string
		for _, network := range r.Networks {
			all = append(all, network+"="+r.Addresses[network])
		}
		return strings.Join(all, " ")
	case "ROLES":
		return strings.Join(r.Roles, ",")
	}
	return r.use(heading)
}

// use gives a cell of what the node uses.
func (r row) use(heading string) string {
	u := r.Usage
	if u == nil {
		return "-"
	}
	amount := func(n int64) string {
		if n < 0 {
			return "-"
		}
		return sizeText(n)
	}
	of := func(text, limit string) string {
		if limit == "" || text == "-" {
			return text
		}
		return text + " of " + limit
	}
	switch heading {
	case "CPUS":
		text, limit := "-", ""
		if u.Processors >= 0 {
			text = fmt.Sprintf("%.2f", u.Processors)
		}
		if u.Limits.Cpus > 0 {
			limit = strconv.FormatFloat(u.Limits.Cpus, 'g', -1, 64)
		}
		return of(text, limit)
	case "MEMORY/MiB":
		text, limit := "-", ""
		if u.Memory >= 0 {
			text = strconv.FormatInt(u.Memory>>20, 10)
		}
		if u.Limits.Memory > 0 {
			limit = strconv.FormatInt(u.Limits.Memory>>20, 10)
		}
		return of(text, limit)
	case "PIDS":
		if u.Pids < 0 {
			return "-"
		}
		return strconv.FormatInt(u.Pids, 10)
	case "DISK":
		return amount(u.Disk)
	}
	return amount(u.Volumes)
}

// word says how the node's health is, and how old that word is.
func (r row) word(now time.Time) string {
	switch {
	case r.Probed:
		return r.Health + " now"
	case r.Health != control.Healthy || r.ProvenAt.IsZero():
		return r.Health
	}
	return r.Health + " " + ago(now.Sub(r.ProvenAt))
}

// ago says how long something was ago, in two words or three.
func ago(d time.Duration) string {
	switch {
	case d < time.Second: // or somebody has set the clock back
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return fmt.Sprintf("%d days ago", d/(24*time.Hour))
}

const gap = 2 // between two columns

// fit sets rows of cells in columns. Where they are wider than a width, the last columns are made narrower first, none to less than its heading.
func fit(cells [][]string, width int) []string {
	wide := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, c := range line {
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
	}
	if width > 0 {
		over := -width - gap
		for _, w := range wide {
			over += w + gap
		}
		for i := len(wide) - 1; i >= 0 && over > 0; i-- {
			least := min(wide[i], utf8.RuneCountInString(cells[0][i]))
			less := min(over, wide[i]-least)
			wide[i], over = wide[i]-less, over-less
		}
	}
	var all []string
	for _, line := range cells {
		text := ""
		for i, c := range line {
			c = cut(c, wide[i])
			text += c + strings.Repeat(" ", max(0, wide[i]+gap-utf8.RuneCountInString(c)))
		}
		all = append(all, cut(strings.TrimRight(text, " "), width))
	}
	return all
}

// cut gives as much of a text as a width holds; 0: all.
func cut(text string, width int) string {
	if runes := []rune(text); width > 0 && len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

// standing says of which release a node is, and whether that is live.
func standing(r control.NodeStatus) string {
	release := "none"
	if r.Release != 0 {
		release = strconv.Itoa(r.Release)
	}
	if r.Quarantine {
		return release + " (quarantine)"
	}
	return release
}
