// Package table prints lists in columns.
package table

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
)

const columnGap = 2 // between two columns

// List prints the result of a verb that lists something. It prints JSON for programs, and otherwise
// a table. The words of the heading are separated by tabs.
func List[T any](w io.Writer, all []T, heading string, cells func(T) []any) error {
	if reply.IsJSON(w) {
		return reply.JSON(w, all)
	}
	rows := [][]string{strings.Split(heading, "\t")}
	for _, each := range all {
		var row []string
		for _, cell := range cells(each) {
			row = append(row, fmt.Sprint(cell))
		}
		rows = append(rows, row)
	}
	_, err := io.WriteString(w, strings.Join(fitColumns(rows, 0), "\n")+"\n")
	return err
}

// Minute formats a time for a cell.
func Minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// fitColumns arranges rows of cells in columns, as lines. See fitCells.
func fitColumns(cells [][]string, width int) []string {
	var all []string
	for _, line := range fitCells(cells, width) {
		all = append(all, screen.Truncate(strings.Join(line, ""), width))
	}
	return all
}

// fitCells returns the cells of rows with the gaps between columns, but without spaces at the end of a row. If
// the columns are wider than the width, it narrows the last columns first, but none below the width of its
// heading.
func fitCells(cells [][]string, width int) [][]string {
	wide := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, c := range line {
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
	}
	if width > 0 {
		over := -width - columnGap
		for _, w := range wide {
			over += w + columnGap
		}
		for i := len(wide) - 1; i >= 0 && over > 0; i-- {
			least := min(wide[i], utf8.RuneCountInString(cells[0][i]))
			less := min(over, wide[i]-least)
			wide[i], over = wide[i]-less, over-less
		}
	}
	all := make([][]string, len(cells))
	for n, line := range cells {
		row := make([]string, len(line))
		for i, c := range line {
			c = screen.Truncate(c, wide[i])
			row[i] = c + strings.Repeat(" ", max(0, wide[i]+columnGap-utf8.RuneCountInString(c)))
		}
		for i := len(row) - 1; i >= 0; i-- {
			if row[i] = strings.TrimRight(row[i], " "); row[i] != "" {
				break
			}
		}
		all[n] = row
	}
	return all
}
