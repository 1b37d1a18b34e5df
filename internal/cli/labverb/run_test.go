package labverb

import (
	"bytes"
	"strings"
	"testing"

	"orrery/internal/cli/verb"
	"orrery/internal/control"
)

// TestLabAside: what is told of nodes that are made anew is shown only when that is asked for.
func TestLabAside(t *testing.T) {
	var out, errs bytes.Buffer
	w, show := labWatch{nil, verb.Output{Out: &out, Err: &errs}}.Aside()
	w.Tell(control.Event{Kind: control.Notice, Text: "a step has failed"})
	if out.Len()+errs.Len() > 0 {
		t.Errorf("shown before: %s%s", out.String(), errs.String())
	}
	if show(); !strings.Contains(errs.String(), "a step has failed") {
		t.Errorf("not shown: %s", errs.String())
	}
}
