package docs_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"orrery/test/need"
)

// onHost are the pages that are also tried on this host, and the sites that they make. What nodes really do is not
// seen in memory.
var onHost = map[string]string{
	"docs/tutorials/first-site.md":    "first",
	"docs/tutorials/change-safely.md": "notes",
	"docs/tutorials/twin.md":          "shop",
	"docs/howto/rename.md":            "shop",
	"docs/howto/service.md":           "front",
}

// TestOnHost does what pages do, in order, at other addresses.
func TestOnHost(t *testing.T) {
	need.Integration(t)
	bin := t.TempDir()
	run(t, ".", nil, "go", "build", "-o", filepath.Join(bin, "orrery"), "../cmd/orrery")
	env := grounds(t, bin)
	for path, site := range onHost {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) {
			end := func() {
				dir := t.TempDir()
				put(t, dir, "site.toml", "site.name = \""+site+"\"\n")
				run(t, dir, env, "orrery", "--force", "twin", "destroy", "dev1")
				run(t, dir, env, "orrery", "down", "--volumes", "--yes-volumes", site)
				os.RemoveAll(filepath.Join(state, "sites", site))
			}
			end() // what a run that was killed has left
			t.Cleanup(end)
			s := &session{T: t, dir: t.TempDir()}
			s.orrery = func(step step, _ []string) {
				status, printed := s.run(env, step.command)
				s.compare(step, status, printed)
			}
			for _, b := range blocks(strings.ReplaceAll(one(t, path).text, "10.8.", "10.213.")) {
				if b.info == "toml" {
					put(t, s.dir, fileOf(b), b.text())
				}
				for _, step := range steps(b) {
					s.do(step)
				}
			}
		})
	}
}

// run runs a command in the session's directory, and returns its status and all that it prints.
func (s *session) run(env []string, command string) (status int, printed string) {
	s.Helper()
	c := exec.CommandContext(s.Context(), "env", "sh", "-c", command) // the program is found in the PATH of env
	var out bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = s.dir, env, &out, &out
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	s.Logf("$ %s (%v)\n%s", command, err, out.String())
	return c.ProcessState.ExitCode(), out.String()
}
