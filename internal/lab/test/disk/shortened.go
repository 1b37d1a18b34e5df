package disk

import (
	"errors"
	"slices"
	"strings"

	"orrery/internal/host"
)

// shortError is an error with a shorter message.
type shortError struct {
	text string
	err  error
}

func (b *shortError) Error() string { return b.text }
func (b *shortError) Unwrap() error { return b.err }

// shortened reduces the output in a program's error to the lines that begin with one of the
// prefixes.
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
	return &shortError{strings.Join(why, "; "), err}
}
