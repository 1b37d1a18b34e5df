package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// TestModel checks that everything in valid-full.toml gets into the model.
func TestModel(t *testing.T) {
	text, err := os.ReadFile("testdata/valid-full.toml")
	if err != nil {
		t.Fatal(err)
	}
	e, err := parse("lab/valid-full.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	none := int64(0)
	want := &Experiment{
		Name: "valid-full", Title: "All keys", Source: "A paper, table 1", Rounds: 12, Most: 40, PerInstance: 3,
		Quiet: 30 * time.Second, Disturbed: 0.1, Width: 0.05, Suite: "bookworm", Dir: "/srv/lab",
		Components: []string{"main", "non-free"}, Packages: []string{"iozone3"},
		Text: text,
		Settings: []Setting{
			{Name: "veth", Engine: "lxc", Network: Veth},
			{
				Name: "routed", Engine: "lxc", Network: Routed, Privileged: true,
				Limits: site.Limits{Cpus: 1.5, Pin: "0-1", Memory: 512 << 20, Swap: &none, Pids: 500},
			},
			{
				Name: "routed again", Again: "routed", Engine: "lxc", Network: Routed, Privileged: true,
				Limits: site.Limits{Cpus: 1.5, Pin: "0-1", Memory: 512 << 20, Swap: &none, Pids: 500},
			},
			{Name: "mac", Engine: "lxc", Network: Macvlan, Interface: "eth1"},
			{Name: "nic", Engine: "lxc", Network: Exclusive},
			{Name: "vm", Engine: "kvm", Network: "virtio", Limits: site.Limits{Memory: site.DefaultVMMemory}},
			{Name: "stripes", Engine: "lxc", Network: Veth, Missing: "there is no object store here"},
		},
	}
	tests := e.Tests
	e.Tests = nil
	if !reflect.DeepEqual(e, want) {
		t.Errorf("got  %+v\nwant %+v", e, want)
	}
	if len(tests) != 3 {
		t.Fatalf("%d tests", len(tests))
	}
	first := &echo{
		Streams: []int{1, 5}, Every: 500 * time.Millisecond, File: 2 << 30, Rate: 3, Direct: true,
		Words: []string{"a"}, Seed: 255, Level: 7, Env: map[string]string{"A": "b"},
	}
	first.More.Depth = 2
	if want := (Test{
		Name: "first", Kind: "echo", Copies: []int{1, 8}, Only: []string{"veth", "routed"}, Limit: 90 * time.Second,
		Source: "table 2", Test: first,
	}); !reflect.DeepEqual(tests[0], want) {
		t.Errorf("got  %+v\nwant %+v", tests[0], want)
	}
	// Options that are not in the file keep the values from New.
	if second := tests[1].Test.(*echo); !reflect.DeepEqual(second.Streams, []int{1}) || second.Every != time.Second ||
		second.Level != 7 {
		t.Errorf("%+v", second)
	}
	if third := tests[2]; !reflect.DeepEqual(third.Copies, []int{1}) || third.Only != nil || third.Limit != 0 {
		t.Errorf("%+v", third)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"disk.toml": "title = 1\n", "Large File.toml": string(defaultText), "huge.toml": strings.Repeat("#", maxFileBytes+1),
		"notes.md": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(filepath.Join(dir, "pipe.toml"), 0o644),
		os.Symlink("/dev/zero", filepath.Join(dir, "zero.toml"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"pipe.toml":       "DIR/pipe.toml: this is not a regular file (name an experiment, such as lab/x.toml)",
		"zero.toml":       "DIR/zero.toml: this is not a regular file (name an experiment, such as lab/x.toml)",
		"disc.toml":       "DIR/disc.toml: there is no such file (did you mean DIR/disk.toml?)",
		"memory.toml":     "DIR/memory.toml: there is no such file (DIR has Large File.toml, disk.toml, huge.toml, pipe.toml, zero.toml)",
		"no/x.toml":       "DIR/no/x.toml: there is no such file (orrery lab run --show prints an example)",
		".":               "DIR: this is not a regular file (name an experiment, such as lab/x.toml)",
		"huge.toml":       "DIR/huge.toml: the file has more than 1024 KiB (check that it is the right file)",
		"Large File.toml": `DIR/Large File.toml:1: experiment name "Large File", from the name of the file, is invalid (rename the file: at most 32 lower case letters, digits and "-")`,
		"disk.toml":       "DIR/disk.toml:1: title must be a string, not 1 (put it in quotation marks: \"1\")",
	} {
		_, err := Read(filepath.Join(dir, path), "")
		if err == nil || problem.ExitCode(err) != int(problem.Mistake) {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), dir, "DIR"), "\n"); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
		}
	}
}
