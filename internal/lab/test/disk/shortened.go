package disk

import (
	"errors"
	"slices"
	"strings"

	"orrery/internal/host"
)

// brief is an error in fewer words.
type brief struct {
	text string
	err  error
}

func (b *brief) Error() string { return b.text }
func (b *brief) Unwrap() error { return b.err }

// shortened says of a program that failed only the lines by which it says why, of all that it printed.
func shortened(err error, begins ...string) error {
	run := (*host.RunError)(nil)
	if !errors.As(err, &run) {
		return err
	}
	var why []string
	for line := range strings.Lines(run.Output) {
		if line = strings.TrimSpace(line); slices.ContainsFunc(begins,
			func(b string) bool { return strings.HasPrefix(line, b) }) {
			why = append(why, line)
		}
	}
	if len(why) == 0 {
		return err
	}
	return &brief{strings.Join(why, "; "), err}
}
