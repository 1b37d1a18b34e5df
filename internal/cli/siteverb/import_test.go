package siteverb

import (
	"bytes"
	"os"
	"path/filepath"
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

// TestImportDirectory: --from compose and ansible write a site directory, and say what is lost.
func TestImportDirectory(t *testing.T) {
	top := t.TempDir()
	file := filepath.Join(top, "file")
	for from, text := range map[string]string{
		"compose": "services:\n  web:\n    ports: [\"80\"]\n",
		"ansible": "[web]\na ansible_port=22\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		run := func(args ...string) error {
			c := Import(&verb.Call{Output: verb.Output{Out: &out, Err: &errs}})
			c.SetArgs(args)
			c.SilenceErrors, c.SilenceUsage = true, true
			return c.Execute()
		}
		into := filepath.Join(top, from)
		if err := run("--from", from, "--into", into, file); !problem.Is(err, problem.Left) ||
			!strings.Contains(errs.String(), "not recognised: file:") ||
			!strings.Contains(out.String(), "orrery -C "+into+" check") {
			t.Errorf("%s: %v\n%s%s", from, err, out.String(), errs.String())
		}
		for _, args := range [][]string{
			{"--from", from, file}, {"--from", from, "--into", into + "2", file, file},
			{"--from", "x", "--into", into + "2", file},
		} {
			if err := run(args...); !problem.Is(err, problem.Usage) {
				t.Errorf("%v: %v", args, err)
			}
		}
	}
}
