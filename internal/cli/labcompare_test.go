package cli

import (
	"bytes"
	"strings"
	"testing"

	"orrery/internal/cli/labverb"
	"orrery/internal/problem"
)

// TestLabCompareSides: -- separates the runs before and after a change. With two runs it is
// optional.
func TestLabCompareSides(t *testing.T) {
	for line, want := range map[string]string{
		"a b c": "write -- between them", "a b c --": "write -- between them", "-- a b": "write -- between them",
		"./none b": "./none is not a bundle", "./none b -- c": "./none is not a bundle",
	} {
		var out, errs bytes.Buffer
		status := Run(append([]string{"lab", "compare"}, strings.Fields(line)...), labverb.Lab{}, nil, &out, &errs)
		if status != int(problem.Usage) || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d: %s", line, status, errs.String())
		}
	}
}
