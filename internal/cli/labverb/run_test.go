package labverb

import (
	"bytes"
	"strings"
	"testing"

	"orrery/internal/cli/verb"
	"orrery/internal/control"
)

// TestLabAside: output about recreated nodes is shown only on request.
func TestLabAside(t *testing.T) {
	var out, errs bytes.Buffer
	w, show := labWatch{nil, verb.Output{Out: &out, Err: &errs}}.Deferred()
	w.Event(control.Event{Kind: control.Notice, Text: "a step has failed"})
	if out.Len()+errs.Len() > 0 {
		t.Errorf("shown before: %s%s", out.String(), errs.String())
	}
	if show(); !strings.Contains(errs.String(), "a step has failed") {
		t.Errorf("not shown: %s", errs.String())
	}
}
