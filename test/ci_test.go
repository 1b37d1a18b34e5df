package test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const ciSite = `
image.debian.suite = "bookworm"
network.cam = { subnet = "10.99.96.0/24" }
node.one = { id = 1, roles = ["marked"] }
node.two = { id = 2 }
secret.token.generate = 24
release.1.notes = "first"
release.2.roles = { marked = "other" }

[test.marker]
node    = "one"
command = ["/bin/sh", "-ec", "cat /etc/marker; test $ORRERY_TEST = marker; test $ORRERY_NODE = one; test -e $ORRERY_INVENTORY"]

[test.sees]
node    = "two"
user    = "nobody"
command = ["/bin/sh", "-ec", "id -un; ping -c 1 -W 2 one"]
`

var ciFiles = files{
	"roles/marked/role.toml": "file = [{path = \"/etc/marker\", content = \"marked\\n\"}]\nsecret = [{name = \"token\"}]\n",
	"roles/other/role.toml":  "file = [{path = \"/etc/marker\", content = \"other\\n\"}]\nsecret = [{name = \"token\"}]\n",
}

// A junit is the report as its consumers parse it.
type junit struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Suite    struct {
		Properties []struct {
			Name  string `xml:"name,attr"`
			Value string `xml:"value,attr"`
		} `xml:"properties>property"`
		Cases []struct {
			Name    string `xml:"name,attr"`
			Class   string `xml:"classname,attr"`
			Output  string `xml:"system-out"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
			Error *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

func (s *site) junit(path string) junit {
	s.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	var j junit
	if err := xml.Unmarshal(text, &j); err != nil {
		s.Fatalf("%v\n%s", err, text)
	}
	return j
}

// wantNoTwin wants that nothing is left of any twin of the site.
func (s *site) wantNoTwin() {
	s.Helper()
	if left := glob(s.dirs.Site(s.name+".*"), filepath.Join(s.dirs.Run, "sites", s.name+".*")); len(left) > 0 {
		s.Errorf("left are %v", left)
	}
}

func TestCI(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-ci", ciSite, ciFiles)
	report := filepath.Join(t.TempDir(), "report.xml")
	t.Run("Passes", func(t *testing.T) { ciPasses(s.of(t), report) })
	t.Run("Fails", func(t *testing.T) { ciFails(s.of(t), report) })
	t.Run("Only", func(t *testing.T) {
		s.of(t).run("ci", "--only", "two", "--only", "one").want(0, "2 of 2 tests passed")
		s.of(t).run("ci", "--only", "nobody").want(2)
	})
	t.Run("Terminated", func(t *testing.T) { ciTerminated(s.of(t), report) })
	t.Run("Killed", func(t *testing.T) { ciKilled(s.of(t)) })
	t.Run("Keep", func(t *testing.T) { ciKeep(s.of(t)) })
	t.Run("Unhealthy", func(t *testing.T) { ciUnhealthy(s.of(t), report) })
}

func ciPasses(s *site, report string) {
	s.run("ci", "--release", "next", "--junit", report).want(0, "ok +marker on one", "2 of 2 tests passed")
	j := s.junit(report)
	if j.Tests != 2 || j.Failures+j.Errors != 0 || len(j.Suite.Cases) != 2 {
		s.Fatalf("%+v", j)
	}
	if c := j.Suite.Cases[0]; c.Name != "marker" || c.Class != "it-ci.one" || c.Output != "other\n" {
		s.Errorf("%+v", c)
	}
	if c := j.Suite.Cases[1]; !strings.HasPrefix(c.Output, "nobody\n") {
		s.Errorf("%+v", c)
	}
	properties := map[string]string{}
	for _, p := range j.Suite.Properties {
		properties[p.Name] = p.Value
	}
	if properties["release"] != "2" || properties["site"] != "it-ci" ||
		!strings.Contains(properties["layers"], " debian") || properties["orrery"] == "" {
		s.Errorf("%v", properties)
	}
	s.wantNoTwin()
	s.run("ci").want(0)
}

func ciFails(s *site, report string) {
	s.edit("site.toml", `"cat /etc/marker;`,
		`"echo the token is $(cat $ORRERY_SECRETS/token); cat /etc/marker; sleep 0.1; exit 3;`)
	defer s.edit("site.toml", `echo the token is $(cat $ORRERY_SECRETS/token); cat /etc/marker; sleep 0.1; exit 3;`,
		`cat /etc/marker;`)
	r := s.run("ci", "--junit", report).
		want(11, "FAIL +marker on one .*: exit status 3", "ok +sees", "1 of 2 tests passed, 1 failed")
	j := s.junit(report)
	c := j.Suite.Cases[0]
	if j.Failures != 1 || c.Failure == nil || c.Failure.Message != "exit status 3" ||
		c.Output != "the token is <secret token>\nmarked\n" || !strings.Contains(r.out, "<secret token>") {
		s.Errorf("%+v\n%s", j, r.out)
	}
	s.wantNoTwin()
}

// slow makes the first test take long, so that something can happen during it.
func (s *site) slow() (undo func()) {
	s.edit("site.toml", `"cat /etc/marker;`, `"echo begun; sleep 60;`)
	return func() { s.edit("site.toml", `"echo begun; sleep 60;`, `"cat /etc/marker;`) }
}

// begun waits until a run has started its twin and is running its tests.
func (s *site) begun() {
	s.Helper()
	s.eventually(func() error {
		_, err := sh("pgrep -f 'echo begun; [s]leep 60'")
		return err
	})
}

func ciTerminated(s *site, report string) {
	defer s.slow()()
	cmd, out, errs := s.command("ci", "--junit", report)
	wait, err := begin(cmd)
	if err != nil {
		s.Fatal(err)
	}
	s.begun()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = wait()
	if status := cmd.ProcessState.ExitCode(); status != 130 {
		s.Errorf("exit status %d\n%s%s", status, out, errs)
	}
	if j := s.junit(report); j.Errors != 2 || j.Tests != 2 ||
		!strings.HasPrefix(j.Suite.Cases[1].Error.Message, "not started") {
		s.Errorf("%+v", j)
	}
	s.wantNoTwin()
}

// ciKilled: a killed run leaves its twin, and the next run destroys it, but not the twin of a run
// that is still alive.
func ciKilled(s *site) {
	undo := s.slow()
	start := func() (kill func()) {
		cmd, _, _ := s.command("ci")
		wait, err := begin(cmd)
		if err != nil {
			s.Fatal(err)
		}
		return func() {
			_ = cmd.Process.Kill()
			_ = wait()
		}
	}
	kill := start()
	s.begun()
	kill()
	killed := glob(s.dirs.Site(s.name + ".ci-*"))
	if len(killed) != 1 {
		s.Fatalf("left are %v", killed)
	}
	kill = start()
	s.eventually(func() error {
		_, err := os.Stat(killed[0])
		if err == nil {
			return os.ErrExist
		}
		return nil
	})
	s.begun()
	undo()
	s.run("ci").want(0)
	if alive := glob(s.dirs.Site(s.name + ".ci-*")); len(alive) != 1 {
		s.Errorf("of the run that lives there is %v", alive)
	}
	kill()
	s.run("ci").want(0, "left by a run that was killed")
	s.wantNoTwin()
}

func ciKeep(s *site) {
	s.run("ci", "--keep", "--only", "one").want(0, "The twin was kept")
	kept := glob(s.dirs.Site(s.name + ".ci-*"))
	if len(kept) != 1 {
		s.Fatalf("kept is %v", kept)
	}
	twin := strings.TrimPrefix(filepath.Base(kept[0]), s.name+".")
	s.run("ci", "--only", "one").want(0)
	s.run("--twin", twin, "status").want(0, "one .*running")
	s.run("twin", "destroy", twin).want(0)
	s.wantNoTwin()
}

func ciUnhealthy(s *site, report string) {
	s.write("roles/marked/role.toml", ciFiles["roles/marked/role.toml"]+
		"[[health]]\ncommand = [\"/bin/sh\", \"-c\", \"echo still broken; false\"]\ntimeout = \"500ms\"\nwithin = \"1s\"\n")
	s.run("ci", "--junit", report).want(8, "ERROR bring-up")
	j := s.junit(report)
	if j.Errors != 1 || j.Suite.Cases[0].Error == nil || !strings.Contains(j.Suite.Cases[0].Output, "still broken") {
		s.Errorf("%+v", j)
	}
	s.run("ci", "--timeout", "1ms").want(1, "not done within 1ms")
	s.wantNoTwin()
}

// TestToykatCI proves the newest release of the example with its own tests.
func TestToykatCI(t *testing.T) {
	t.Parallel()
	s := newExample(t, "toykat", "it-toykat-ci", "10.8.67.", "10.99.98.", "10.8.68.", "10.99.99.")
	s.run("ci", "--release", "next").
		want(0, "ok +receptors on portal", "ok +point on portal", "ok +fresh on db", "3 of 3 tests passed")
	s.wantNoTwin()
}
