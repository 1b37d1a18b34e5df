package reply

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestAsked: --json is recognized like other flags, and arguments after "--" belong to another
// program.
func TestAsked(t *testing.T) {
	for line, want := range map[string]bool{
		"status --json": true, "--json=true status": true, "status --json=1": true, "status --json=false": false,
		"status": false, "status --jsonx": false,
		"exec db -- jq --json": false, "exec db --json -- ls": true, "status --json=much": false,
	} {
		if got := IsRequested(strings.Fields(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// TestReply: a program gets one object with the errors and the exit status, whether the verb prints
// JSON, text or nothing.
func TestReply(t *testing.T) {
	type object struct {
		Version, Status int
		Result          any
		Errors          []entry
	}
	wrong := problem.New(problem.Mistake, "it is wrong").At("site.toml").Try("mend it")
	for name, do := range map[string]func(r *Reply) any{
		"JSON":    func(r *Reply) any { _ = JSON(r, []any{"a"}); return []any{"a"} },
		"text":    func(r *Reply) any { _, _ = r.Write([]byte("hello")); return map[string]any{"output": "hello"} },
		"nothing": func(*Reply) any { return nil },
		"much": func(r *Reply) any {
			r.Most = 3
			_, _ = r.Write([]byte("hello"))
			return map[string]any{"output": "hel", "cut": true}
		},
	} {
		var out bytes.Buffer
		r := New(&out, &bytes.Buffer{})
		want, _ := json.Marshal(do(r))
		r.Finish(wrong)
		var got object
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out.String())
		}
		result, _ := json.Marshal(got.Result)
		if string(result) != string(want) || got.Version != version || got.Status != int(problem.Mistake) {
			t.Errorf("%s: %s", name, out.String())
		}
		if len(got.Errors) != 1 || got.Errors[0].Where != "site.toml" || got.Errors[0].Cure != "mend it" {
			t.Errorf("%s: errors %+v", name, got.Errors)
		}
	}
	(*Reply)(nil).Finish(wrong) // JSON was not asked for
}
