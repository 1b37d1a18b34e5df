package siteverb

import (
	"bytes"
	"strings"
	"testing"

	"orrery/internal/cli/verb"
	"orrery/internal/problem"
)

// TestImportStatus: the exit status shows whether all of a database is in the site file.
func TestImportStatus(t *testing.T) {
	for text, want := range map[string]int{
		"[a]\nctid = 700101\nip = 10.0.0.1\nroles = web\n":                0, // a missing role is no loss
		"[a]\nctid = 700101\n[b]\nctid = 701101\n":                        int(problem.Left),
		"[a]\nserial = CZ3340ABCD\n":                                      int(problem.Left),
		"[a]\nos/template = ubuntu-10.04\n":                               int(problem.Left),
		"[a]\nhost_server = somewhere.example.org\n":                      0,
		"[a]\nip = 10.0.0.1\n[b]\nip = 10.0.0.1\n":                        int(problem.Left),
		"[a]\nproduction = yes\nctid = 1\n[b]\nproduction = no\nctid=2\n": int(problem.Left),
	} {
		var out, errs bytes.Buffer
		call := &verb.Call{In: strings.NewReader(text), Output: verb.Output{Out: &out, Err: &errs}}
		err := Import(call).RunE(nil, []string{"-"})
		if problem.ExitCode(err) != want || !strings.Contains(out.String(), "[node.a]") {
			t.Errorf("%q: %v\n%s%s", text, err, errs.String(), out.String())
		}
		if lost := strings.Count(errs.String(), "orrery: not recognised: "); (lost > 0) != (want != 0) || want != 0 &&
			!strings.Contains(err.Error(), "not recognised") {
			t.Errorf("%q: %d lost: %s, %v", text, lost, errs.String(), err)
		}
	}
}
