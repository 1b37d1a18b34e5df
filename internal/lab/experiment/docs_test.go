package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/strict"
)

const root = "../../../"

// TestDocumentation reads every experiment in docs/lab.md, which are the blocks marked "toml
// experiment", and the options of kinds.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(root + "docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```toml experiment\n(.*?)\n```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("no experiment in docs/lab.md")
	}
	for i, b := range blocks {
		if _, err := Parse(fmt.Sprintf("block%d.toml", i+1), []byte(b[1]), ""); err != nil {
			t.Error(err)
		}
	}
	for _, key := range slices.Concat(strict.Keys(&file{}), strict.Keys(&settingTable{}), strict.Keys(&testTable{})) {
		if !strings.Contains(string(text), key) {
			t.Errorf("docs/lab.md does not say anything of the key %s", key)
		}
	}
	for engine := range missingEngines() {
		if !strings.Contains(string(text), "`"+engine+"`") {
			t.Errorf("docs/lab.md does not say that the engine %s is known", engine)
		}
	}
}

// TestExamples: each file of examples/lab says what it follows and what it compares, and is in the
// README.
func TestExamples(t *testing.T) {
	readme, err := os.ReadFile(root + "examples/lab/README.md")
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(root + "examples/lab/*.toml")
	if len(paths) < 7 {
		t.Errorf("%d examples", len(paths))
	}
	for _, path := range paths {
		e, err := Read(path, "")
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(e.Text), "\n# What is compared: ") {
			t.Errorf("%s does not say what is compared", path)
		}
		if !strings.Contains(string(readme), "["+e.Name+"]("+e.Name+".toml)") {
			t.Errorf("the README does not have %s", e.Name)
		}
	}
}

// TestDefault: the experiment that comes with Orrery takes about a quarter of an hour, and compares
// a container with the bare host in everything that issue 4 asks for.
func TestDefault(t *testing.T) {
	e := Default()
	var kinds []string
	var round time.Duration
	for i := range e.Tests {
		one := &e.Tests[i]
		kinds = append(kinds, one.Kind)
		round += one.Time() * time.Duration(len(one.Copies)*places(e, one))
	}
	if total := time.Duration(e.Most+1) * round; total > 14*time.Minute {
		t.Errorf("it takes %v", total)
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{"capture", "cpu", "disk", "micro", "net"}) {
		t.Errorf("it has %v", kinds)
	}
	if len(e.Settings) == 0 || e.Settings[0].Network != Veth {
		t.Errorf("%+v", e.Settings)
	}
}

// places returns in how many settings a test runs.
func places(e *Experiment, one *Test) int {
	n := 2
	for _, s := range e.Settings {
		if s.Missing == "" && one.RunsIn(s.Name) {
			n++
		}
	}
	return n
}
