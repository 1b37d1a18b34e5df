package testrun

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// PrintResult prints one result for people. For tests that did not pass, it also prints their output.
func PrintResult(w io.Writer, r Result) {
	word := map[Outcome]string{Passed: "ok", Failed: "FAIL", Errored: "ERROR", Skipped: "skip"}[r.Outcome]
	line := fmt.Sprintf("%-5s %s", word, r.Name)
	if r.Node != "" {
		line += " on " + r.Node
	}
	if r.Took > 0 {
		line += fmt.Sprintf(" (%s)", r.Took.Round(10*time.Millisecond))
	}
	if r.Reason != "" {
		line += ": " + strings.ReplaceAll(r.Reason, "\n", "\n      ")
	}
	fmt.Fprintln(w, line)
	if r.Outcome == Passed || strings.TrimSpace(r.Output) == "" {
		return
	}
	lines := strings.Split(strings.TrimSpace(r.Output), "\n")
	if left := len(lines) - maxShownLines; left > 0 {
		fmt.Fprintf(w, "      … %d lines before …\n", left)
		lines = lines[left:]
	}
	for _, line := range lines {
		fmt.Fprintf(w, "      %s\n", line)
	}
}

// maxShownLines is how many lines of an output are printed for people. The report has all of it.
const maxShownLines = 40

// Summary returns the last line of the output for people.
func (r *Report) Summary() string {
	text := fmt.Sprintf("%s: %d of %d tests passed", r.Site, r.Count(Passed), len(r.Results)-r.Count(Skipped))
	for _, part := range []struct {
		outcome Outcome
		word    string
	}{{Failed, "failed"}, {Errored, "could not be run"}, {Skipped, "skipped"}} {
		if n := r.Count(part.outcome); n > 0 {
			text += fmt.Sprintf(", %d %s", n, part.word)
		}
	}
	return text + fmt.Sprintf(", in %s.", r.Took.Round(time.Second/10))
}
