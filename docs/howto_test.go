package docs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/cli"
	"orrery/internal/cli/labverb"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
)

// notInMemory are the beginnings of commands that need a real host, and what shows there that they
// work. TestCommandLines checks their flags.
var notInMemory = map[string]string{
	"doctor":             "test.TestMisuse",
	"console":            "test.TestMachines",
	"screen":             "test.TestMachines",
	"lab":                "test.TestLab",
	"move":               "test.TestMove",
	"rehearse":           "test.TestRehearse",
	"release show":       "docs.TestSession",
	"release diff":       "docs.TestSession",
	"mirror pull":        "test.TestMirror",
	"backup":             "test.TestBackup",
	"plan --probe":       "test.TestDrift",
	"restore":            "test.TestBackup",
	"service":            "test.TestService",
	"--twin drill":       "test.TestBackup",
	"twin destroy drill": "test.TestBackup",
}

// maxHowTo is how many words a how-to may have.
const maxHowTo = 300

// TestNotInMemory: the tests that notInMemory names are there.
func TestNotInMemory(t *testing.T) {
	for begin, test := range notInMemory {
		if dir, name, _ := strings.Cut(test, "."); !hasTest(t, "../"+dir, name) {
			t.Errorf("%s: %s is not there", begin, test)
		}
	}
}

// TestHowTo runs the commands of each how-to and tutorial, in order, on a machine in memory.
//
// The pages show a session in a shell. "cat FILE" shows what the reader has written into the file,
// "wget" writes zeros, and "cd" and "sed" work as usual. Other programs, such as ssh, are left out.
// A command must succeed, unless the page shows an error of it.
func TestHowTo(t *testing.T) {
	for _, p := range pages(t) {
		dir, name := filepath.Split(p.path)
		if dir != "docs/howto/" && dir != "docs/tutorials/" {
			continue
		}
		t.Run(filepath.Base(dir)+"/"+strings.TrimSuffix(name, ".md"), func(t *testing.T) {
			if words := len(strings.Fields(p.text)); dir == "docs/howto/" && words > maxHowTo {
				t.Errorf("%d words; at most %d", words, maxHowTo)
			}
			if dir == "docs/howto/" && len(p.blocks) != 1 {
				t.Errorf("%d blocks of code; a how-to has one", len(p.blocks))
			}
			s := newSession(t)
			if strings.Contains(p.text, "import --from proxmox") {
				files := os.DirFS(filepath.Join(root, "internal/control/draft/testdata/proxmox"))
				if err := os.CopyFS(s.dir, files); err != nil {
					t.Fatal(err)
				}
			}
			s.follow(p.blocks)
		})
	}
}

// A session is a shell.
type session struct {
	*testing.T
	machine *machine // in memory, or nil
	dir     string   // the working directory
	// orrery runs the program. It compares what it prints with what the page shows.
	orrery func(step step, args []string)
}

// newSession returns a session on a machine in memory, in an empty directory. Another machine is at 10.8.1.2.
func newSession(t *testing.T) *session {
	t.Helper()
	s := &session{T: t, machine: newMachine(t, "10.8.1.1"), dir: t.TempDir()}
	s.orrery = s.inMemory
	s.machine.others = map[string]*machine{"root@10.8.1.2": newMachine(t, "10.8.1.2")}
	t.Setenv("ORRERY_STATE", s.machine.dirs.State)
	t.Setenv("ORRERY_RUN", s.machine.dirs.Run)
	t.Setenv("HOME", s.dir)
	return s
}

// follow does what the blocks of a page say, in order.
func (s *session) follow(all []block) {
	s.Helper()
	for _, b := range all {
		if b.info == "toml" {
			put(s.T, s.dir, fileOf(b), b.text())
		} else if b.info != "console" {
			s.Errorf("line %d: a block must be a console session", b.line)
		}
		for _, step := range steps(b) {
			s.do(step)
		}
	}
}

// do does what a step says and compares what it prints with what the page shows.
func (s *session) do(step step) {
	s.Helper()
	command, _, _ := strings.Cut(step.command, "  # ")
	command, _, _ = strings.Cut(command, " > ")
	words, err := split(command)
	if err != nil {
		s.Fatalf("$ %s: %v", step.command, err)
	}
	switch words[0] {
	case "cat":
		if !filepath.IsAbs(words[1]) {
			put(s.T, s.dir, words[1], step.prints)
		}
	case "cd":
		s.dir = filepath.Join(s.dir, words[1])
	case "wget":
		put(s.T, s.dir, filepath.Base(words[1]), strings.Repeat("\x00", 512))
	case "sed":
		run(s.T, s.dir, os.Environ(), words...)
	case "sudo":
		if words[1] == "orrery" {
			s.orrery(step, words[2:])
		}
	case "orrery":
		s.orrery(step, words[1:])
	}
}

func (s *session) inMemory(step step, args []string) {
	s.Helper()
	if slices.Equal(args[:min(2, len(args))], []string{"lab", "run"}) {
		if _, err := experiment.Read(filepath.Join(s.dir, args[2]), ""); err != nil {
			s.Error(err)
		}
	}
	for begin := range notInMemory {
		if strings.HasPrefix(strings.Join(args, " ")+" ", begin+" ") {
			return
		}
	}
	s.Chdir(s.dir)
	var out bytes.Buffer
	status := cli.RunOn(s.machine, args, labverb.Lab{}, strings.NewReader(""), &out, &out)
	s.compare(step, status, out.String())
}

// compare compares what a command has done with what the page shows.
func (s *session) compare(step step, status int, printed string) {
	s.Helper()
	expected := []int{0, int(problem.Changes), int(problem.Trial)}
	if !slices.Contains(expected, status) && !strings.Contains(step.prints, "orrery: ") {
		s.Fatalf("$ %s\nstatus %d:\n%s", step.command, status, printed)
	}
	if miss := missing(printed, varies.ReplaceAllString(step.prints, "…")); miss != "" {
		s.Fatalf("$ %s\ndoes not print\n%s\nbut\n%s", step.command, miss, printed)
	}
}
