package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/test/need"
)

// A site is a test's site directory. When the test ends, the site is destroyed, and nothing of it
// may be left.
type site struct {
	*testing.T
	name    string
	dir     string
	dirs    host.Dirs // where its state is
	program string
	env     []string
}

// files are the files of a site directory, by path.
type files map[string]string

// usedNames are the names of the sites that exist, with the tests that they belong to.
var usedNames sync.Map

// newSite makes a site directory. The given site.toml lacks the site's name, which no test that runs at the
// same time may use.
func newSite(t *testing.T, name, siteFile string, rest files) *site {
	t.Helper()
	need.Integration(t)
	if test, used := usedNames.LoadOrStore(name, t.Name()); used {
		t.Fatalf("the site of %s is called %s, too", test, name)
	}
	t.Cleanup(func() { usedNames.Delete(name) })
	s := &site{T: t, name: name, dir: t.TempDir(), dirs: dirs, program: program, env: environment(dirs)}
	s.write("site.toml", "site.name = \""+name+"\"\n"+siteFile)
	for path, text := range rest {
		s.write(path, text)
	}
	s.Cleanup(s.end)
	return s
}

// newExample copies an example, with another name and other addresses.
func newExample(t *testing.T, example, name string, replace ...string) *site {
	t.Helper()
	s := newSite(t, name, "", nil)
	from := filepath.Join("../examples", example)
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		inside, _ := filepath.Rel(from, path)
		s.write(inside, strings.NewReplacer(replace...).Replace(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.edit("site.toml", `"`+example+`"`, `"`+name+`"`)
	return s
}

// keepIn sets where the state of the site is from now on.
func (s *site) keepIn(dirs host.Dirs) {
	s.dirs, s.env = dirs, environment(dirs)
}

// at returns the site for a user with other state directories.
func (s *site) at(dirs host.Dirs) *site {
	other := *s
	other.keepIn(dirs)
	return &other
}

func (s *site) end() {
	if err := forget(s.dirs, s.name); err != nil {
		s.Error(err)
		return
	}
	s.wantNoTrace()
}

func (s *site) write(path, text string) {
	s.Helper()
	path = filepath.Join(s.dir, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		s.Fatal(err)
	}
}

// edit replaces a text in a file of the site directory. The text must exist.
func (s *site) edit(path, old, text string) {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(s.dir, path))
	if err != nil {
		s.Fatal(err)
	}
	if !strings.Contains(string(content), old) {
		s.Fatalf("%q is not in %s", old, path)
	}
	s.write(path, strings.Replace(string(content), old, text, 1))
}

// A result is the result of a call of the program.
type result struct {
	*site
	args   []string
	status int
	out    string
	errs   string
	took   time.Duration
}

// nowhere returns the site for a user who does not have its directory.
func (s *site) nowhere() *site {
	other := *s
	other.dir = ""
	return &other
}

func (s *site) command(args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	if s.dir != "" {
		args = append([]string{"-C", s.dir}, args...)
	}
	cmd = exec.Command(s.program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, out, errs
	cmd.WaitDelay = time.Second // processes that it leaves in a node may hold the pipes
	return cmd, out, errs
}

// run runs the program to its end.
func (s *site) run(args ...string) result {
	s.Helper()
	cmd, out, errs := s.command(args...)
	began := time.Now()
	wait, err := begin(cmd)
	if err != nil {
		s.Fatal(err)
	}
	// A verb that hangs shows where. An emulated machine on a busy host takes ten minutes for its boot.
	impatient := time.AfterFunc(30*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer impatient.Stop()
	_ = wait()
	r := result{s, args, cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(began)}
	if r.took > 5*time.Second {
		s.Logf("orrery %s took %s", strings.Join(args, " "), r.took.Round(time.Second/10))
	}
	if strings.Contains(r.errs, "goroutine ") {
		s.Errorf("orrery %s panicked or hung\n%s", strings.Join(args, " "), r.errs)
	}
	return r
}

// do runs the program, which must succeed, and returns its output.
func (s *site) do(args ...string) string {
	s.Helper()
	return s.run(args...).want(0).out
}

// want wants an exit status and, in the output or among the errors, texts (regular expressions).
func (r result) want(status int, texts ...string) result {
	r.Helper()
	if r.status != status {
		r.Fatalf("orrery %s: exit status %d, want %d\n%s%s", strings.Join(r.args, " "), r.status, status, r.out, r.errs)
	}
	for _, text := range texts {
		if !regexp.MustCompile(text).MatchString(r.out + r.errs) {
			r.Errorf("orrery %s: %q is not in its output\n%s%s", strings.Join(r.args, " "), text, r.out, r.errs)
		}
	}
	return r
}

// on runs a command in a node and returns its output, without surrounding white space.
func (s *site) on(node string, command ...string) string {
	s.Helper()
	return strings.TrimSpace(s.do(append([]string{"shell", node, "--"}, command...)...))
}

// sh runs a script in a node.
func (s *site) sh(node, script string) string {
	s.Helper()
	return s.on(node, "/bin/sh", "-c", script)
}

// settled checks that nothing is left to do and that all nodes are as declared.
func (s *site) settled() {
	s.Helper()
	s.run("plan").want(0)
	s.run("status").want(0)
}

// A step is a step of `orrery plan --json`.
type step struct {
	Kind, Subject, Reason string
}

// replied returns the result from the output of --json.
func replied(text string) []byte {
	var reply struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		return []byte(text) // not what the test expects either
	}
	return reply.Result
}

// plan returns the steps that up would do.
func (s *site) plan(args ...string) []step {
	s.Helper()
	var p struct{ Steps []step }
	r := s.run(append([]string{"plan", "--json"}, args...)...)
	if err := json.Unmarshal(replied(r.out), &p); err != nil {
		s.Fatalf("plan --json: %v\n%s%s", err, r.out, r.errs)
	}
	return p.Steps
}

// wantPlan wants exactly these steps, each written as "kind subject", in any order.
func (s *site) wantPlan(want ...string) {
	s.Helper()
	wanted := map[string]bool{}
	for _, w := range want {
		wanted[w] = true
	}
	for _, p := range s.plan() {
		if text := p.Kind + " " + p.Subject; !wanted[text] {
			s.Errorf("plan: %s (%s), which was not expected", text, p.Reason)
		} else {
			delete(wanted, text)
		}
	}
	for text := range wanted {
		s.Errorf("plan: %s is missing", text)
	}
}

// eventualLimit is longer than anything takes on a busy machine.
const eventualLimit = 10 * time.Minute

// eventually tries until there is no error, and fails if there still is one after eventualLimit.
func (s *site) eventually(try func() error) {
	s.Helper()
	deadline := time.Now().Add(eventualLimit)
	for pause := 25 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("not within %s: %v", eventualLimit, err)
		}
		time.Sleep(pause)
	}
}

// of returns the site for a subtest.
func (s *site) of(t *testing.T) *site {
	part := *s
	part.T = t
	return &part
}

// sh runs a script on this host.
func sh(script string) (string, error) {
	out, err := exec.Command("/bin/sh", "-c", script).Output()
	return strings.TrimSpace(string(out)), err
}
