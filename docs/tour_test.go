package docs_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"orrery/test/need"
)

// TestTour does what the README and the tour do, in order, on copies of the examples under other
// names and at other addresses, and sees that it prints what they say, and that the picture in the
// README is what the program draws.
func TestTour(t *testing.T) {
	need.Integration(t)
	bin := t.TempDir()
	run(t, ".", nil, "go", "build", "-o", filepath.Join(bin, "orrery"), "../cmd/orrery")
	env := grounds(t, bin)
	t.Run("README", func(t *testing.T) {
		tour(t, env, "README.md", "quickstart", 2, func(dir string) {
			drawn := run(t, dir, env, "orrery", "graph")
			if drawn = strings.NewReplacer("10.99.73.", "10.8.73.", "10.99.74.", "10.8.74.", "tour",
				"quickstart").Replace(drawn); drawn != string(picture(t)) {
				t.Errorf("orrery graph does not draw %s", quickstartPicture)
			}
		}, "quickstart:", "tour:", `"quickstart"`, `"tour"`, "10.8.73.", "10.99.73.", "10.8.74.", "10.99.74.",
			// Another site may have prepared the host, and have left layers.
			"4 nodes to create; 23 steps", "4 nodes to create; … steps")
	})
	t.Run("tour", func(t *testing.T) {
		tour(t, env, "docs/tour.md", "toykat", 8, func(string) {},
			"toykat:", "tour:", `"toykat"`, `"tour"`, "of toykat", "of tour", "10.8.67.", "10.213.67.", "10.8.68.", "10.213.68.")
	})
}

// state is where sites of these tests are kept, apart from those of others, who may be at work at
// the same time.
var state = filepath.Join(need.State(), "docs")

// grounds returns the environment for a program that is in a directory.
func grounds(t *testing.T, bin string) []string {
	t.Helper()
	need.Apart(t, state)
	run := need.Run() + "-docs"
	t.Cleanup(func() { _ = os.Remove(run) }) // of a site that is up, it is mounted
	return append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "ORRERY_STATE="+state, "ORRERY_RUN="+run)
}

// tour does what a page does with an example, at least so many commands, and then something else.
// In the place of the documents' names stand those of this test.
func tour(t *testing.T, env []string, page, example string, least int, then func(dir string), replace ...string) {
	other := strings.NewReplacer(replace...)
	site := filepath.Join(t.TempDir(), "site")
	if err := os.CopyFS(site, os.DirFS(filepath.Join(root, "examples", example))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(site, "site.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(other.Replace(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
	end := func() { takeDown(t, site, env, "tour") }
	end() // what a run that was killed has left
	t.Cleanup(end)
	commands := 0
	for _, b := range one(t, page).blocks {
		if b.info != "console" {
			continue
		}
		for _, step := range steps(b) {
			commands++
			printed := run(t, site, env, "sh", "-c", step.command)
			if miss := missing(printed, age.ReplaceAllString(other.Replace(step.prints), "healthy …")); miss != "" {
				t.Fatalf("$ %s\ndoes not print\n%s\nbut\n%s", step.command, miss, printed)
			}
		}
	}
	if commands < least {
		t.Errorf("%s has only %d commands", page, commands)
	}
	then(site)
}

// A step is a command of a console block and what it prints.
type step struct{ command, prints string }

func steps(b block) []step {
	var all []step
	for _, line := range b.lines {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, step{command: command})
		} else if len(all) > 0 {
			all[len(all)-1].prints += line + "\n"
		}
	}
	return all
}

// run returns all that a command prints, in order. Its status is for whoever reads that.
func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	_, printed := runStatus(t, dir, env, args...)
	return printed
}

// runStatus returns the exit status of a command, and all that it prints, in order.
func runStatus(t *testing.T, dir string, env []string, args ...string) (status int, printed string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	// By env(1), because the program is to be found in the PATH that is given, not in that of the test.
	c := exec.CommandContext(ctx, "env", args...)
	c.Dir, c.Env = dir, env
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	t.Logf("$ %s (%v)\n%s", strings.Join(args, " "), err, out.String())
	return c.ProcessState.ExitCode(), out.String()
}

// takeDown takes down a site and its twin dev1, as far as they are there, and forgets it.
func takeDown(t *testing.T, dir string, env []string, site string) {
	t.Helper()
	run(t, dir, env, "orrery", "twin", "destroy", "dev1")
	run(t, dir, env, "orrery", "down", "--volumes", "--yes-volumes", site)
	os.RemoveAll(filepath.Join(state, "sites", site))
}

var age = regexp.MustCompile(`healthy \d+ s ago`)

// missing returns the first line that should have been printed and was not. "…" stands for anything;
// which of several nodes comes first is left to them.
func missing(printed, want string) string {
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		if line == "" || line == "…" {
			continue
		}
		var pattern []string
		for _, part := range strings.Split(line, "…") {
			words := strings.Fields(part)
			for i, w := range words {
				words[i] = regexp.QuoteMeta(w)
			}
			pattern = append(pattern, strings.Join(words, `\s+`))
		}
		if !regexp.MustCompile(`(?m)^\s*` + strings.Join(pattern, `.*`) + `\s*$`).MatchString(printed) {
			return line
		}
	}
	return ""
}

func TestMissing(t *testing.T) {
	for _, c := range []struct{ printed, want, miss string }{
		{"a  b\nc\n", "a b\nc\n", ""},
		{"a b c\n", "a … c\n", ""},
		{"[1/2] node x: ok (0.25 s)\n", "[1/2] node x: ok …\n…\n", ""},
		{"a\n", "a\nb\n", "b"},
		{"ab\n", "a\n", "a"},
	} {
		if got := missing(c.printed, c.want); got != c.miss {
			t.Errorf("missing(%q, %q) = %q, not %q", c.printed, c.want, got, c.miss)
		}
	}
}
