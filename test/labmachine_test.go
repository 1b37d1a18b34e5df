package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// machinesLab has a virtual machine for each of two network cards, and reaches the other end through it. It
// reads a file in places where it comes from the disk, and in one where it comes from the host's memory.
const machinesLab = `
title  = "virtual machines"
rounds = 5
most   = 5
rounds_per_instance = "none" # nothing need be decided here
quiet     = "none"
disturbed = 1
again     = "none"

[setting.virtio]
engine = "kvm"
memory = "256MiB"

[setting.e1000]
engine  = "kvm"
network = "e1000"
memory  = "256MiB"
cpu     = "qemu64"

[setting.file]
engine = "kvm"
memory = "256MiB"
disk   = "file"

[setting.veth]

[test.kernel]
kind    = "command"
only    = ["virtio", "e1000"]
limit   = "2m"
command = "sed 's/^processor.*: /processor /' /proc/cpuinfo | grep -c '^processor '"
figures = [{ name = "processors", unit = "1", better = "neither", regex = "([0-9]+)" }]

[test.words]
kind    = "command"
copies  = 2
only    = ["virtio"]
command = ["seq", "1000", "1000"]
figures = [{ name = "words", unit = "1/s", better = "neither", regex = "([0-9]+)" }]

[test.net]
kind    = "net"
only    = ["virtio", "e1000"]
limit   = "3m"
seconds = 1
streams = [1]
protocols  = ["tcp"]
directions = ["forward"]
packets = false
rtt     = false

[test.disk]
kind     = "disk"
only     = ["virtio", "file", "veth"]
size     = "64MiB"
matrices = []
jobs     = [{ rw = "read", block = "1MiB" }]
seconds  = 1.0
limit    = "3m"
`

// labMachines: settings are virtual machines with the named network cards. If this host emulates
// their processors, each row says so, and they are not compared with rows that were not emulated.
func labMachines(t *testing.T) {
	s := newLab(t)
	s.write("lab/machines.toml", machinesLab)
	bundle := filepath.Join(s.dir, "bundle")
	s.run("lab", "run", filepath.Join(s.dir, "lab/machines.toml"), "--to", bundle).want(0, "")
	read := func(name string, into any) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(bundle, name))
		if err == nil && into != nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var facts struct{ Emulated []string }
	read("facts.json", &facts)
	suffix := ""
	if len(facts.Emulated) > 0 {
		suffix = " (emulated)"
	}
	measured, pairs := map[string]int{}, 0.0
	for _, test := range s.answer(bundle).Tests {
		if len(test.Failures) > 0 {
			t.Errorf("%s: %+v", test.Name, test.Failures)
		}
		for _, f := range test.Figures {
			for _, c := range f.Cells {
				if c.Missing == "" && test.Name != "disk" {
					measured[c.Setting]++
				}
				if f.Name == "words" && c.Setting == "virtio"+suffix && c.Summary != nil {
					pairs = c.Summary.Median
				}
			}
		}
	}
	for setting, want := range map[string]int{"virtio": 3, "e1000": 2, "bare": 3} {
		if setting != "bare" {
			setting += suffix
		}
		if measured[setting] != want {
			t.Errorf("%s was measured in %d figures: %v", setting, measured[setting], measured)
		}
	}
	if pairs != 2000 {
		t.Errorf("two machines at once give %v, not the sum of both", pairs)
	}
	s.wantPageCache(bundle, "virtio")
	head := string(read("bundle.json", nil))
	s.run("lab", "compare", bundle, bundle).want(0, regexp.QuoteMeta("virtio"+suffix))
	if suffix == "" {
		return
	}
	other := filepath.Join(s.dir, "other")
	if err := os.CopyFS(other, os.DirFS(bundle)); err != nil {
		t.Fatal(err)
	}
	trials := strings.ReplaceAll(string(read("trials.jsonl", nil)), `"emulated":true,`, "")
	s.write("other/trials.jsonl", trials)
	s.write("other/bundle.json", strings.ReplaceAll(head, `"emulated": true`, `"emulated": false`))
	s.run("lab", "compare", bundle, other).want(3, "was emulated in software")
}
