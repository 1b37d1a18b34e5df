package test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/lab/experiment"
)

// small are the keys that make each test of the experiment of `make lab` short.
var small = map[string]string{
	"cpu":     "work = 20",
	"micro":   "rows = [\"udp-latency\", \"tcp-connect\", \"pipe-latency\"]\ntime = 0.1",
	"net":     "directions = [\"forward\"]\npackets = false\nrtt = false\nwarm_up = 0",
	"disk":    "size = \"16MiB\"\nseconds = 0.1\nwarm_up = 0.0",
	"capture": "trial = \"20ms\"\ntrials = 3\nlossy = 1\nprecision = 0.2\nmost = \"300Mbit/s\"\npaper = false",
}

// labDefault: the experiment of `make lab` runs with short tests, on several instances of its
// nodes. All trials give figures, from the first instance to the last.
func labDefault(t *testing.T) {
	e := experiment.Default()
	text := "rounds = 5\nmost = 5\nrounds_per_instance = 1\nagain = \"none\"\nquiet = \"none\"\ndisturbed = 1\n[setting.veth]\n"
	for _, one := range e.Tests {
		keys, ok := small[one.Kind]
		if !ok {
			t.Fatalf("test %s is not made small here", one.Name)
		}
		text += "[test." + one.Name + "]\nkind = \"" + one.Kind + "\"\n" + keys + "\n"
		if one.Kind == "net" {
			text += "protocols = [\"tcp\"]\nstreams = [1]\n"
		}
	}
	s := newLab(t)
	s.write("lab/small.toml", text)
	bundle := filepath.Join(s.dir, "small")
	s.run("lab", "run", filepath.Join(s.dir, "lab/small.toml"), "--to", bundle).want(0)
	s.wantNoTrace()
	if all := s.labInstances(bundle); len(all) < 3 {
		t.Errorf("instances %v", all)
	}
	var without []string
	for _, one := range s.answer(bundle).Tests {
		for _, f := range one.Failures {
			t.Errorf("%s in %s: %s\n%s", one.Name, f.Setting, f.Reason, f.Output)
		}
		for _, figure := range one.Figures {
			if !slices.ContainsFunc(figure.Cells, func(c cellAnswer) bool { return c.Setting == "veth" && c.Summary != nil }) {
				without = append(without, one.Name+", "+figure.Name)
			}
		}
	}
	if len(without) > 0 {
		t.Errorf("without a value: %s", strings.Join(without, "; "))
	}
}
