package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// equalLab measures the conditions in each place.
const equalLab = `
title  = "equal conditions"
rounds = 5
most   = 5
rounds_per_instance = "none"
again     = "none"
quiet     = "none"
disturbed = 1

[setting.veth]

# In how many control group hierarchies the command is beside the nodes; nodes see themselves at the top.
[test.groups]
kind    = "command"
command = '''
inside=$(grep -c ':/orrery/orrery-lab' /proc/self/cgroup) || true
all=$(grep -c . /proc/self/cgroup)
[ "$ORRERY_SETTING" = veth ] || [ $inside = $all ] || { cat /proc/self/cgroup >&2; exit 1; }
echo $all
'''
figures = [{ name = "groups", unit = "1", better = "neither", regex = "([0-9]+)" }]

[test.loopback]
kind = "micro"
rows = ["udp-latency", "tcp-connect"]
time = 0.1
`

// labEqual: the commands of the bare host run under the same conditions as those of nodes.
func labEqual(t *testing.T) {
	s := newLab(t)
	s.write("lab/equal.toml", equalLab)
	bundle := filepath.Join(s.dir, "equal")
	s.run("lab", "run", filepath.Join(s.dir, "lab/equal.toml"), "--to", bundle).want(0)
	s.wantNoTrace()
	alike, hosts := 0, 0
	for _, one := range s.answer(bundle).Tests {
		for _, f := range one.Failures {
			t.Errorf("%s in %s: %s\n%s", one.Name, f.Setting, f.Reason, f.Output)
		}
		for _, figure := range one.Figures {
			for _, c := range figure.Cells {
				switch {
				case c.Setting != "veth" || c.Ratio == nil:
				case strings.HasPrefix(figure.Name, "host's rules, "):
					hosts++
				default:
					alike++
				}
			}
		}
	}
	if alike != 3 || hosts != 2 {
		t.Errorf("%d figures under equal conditions, and %d with the rules of the host", alike, hosts)
	}
	facts, err := os.ReadFile(filepath.Join(bundle, "facts.json"))
	if err != nil || !strings.Contains(string(facts), "inet orrery-"+s.name) {
		t.Errorf("the facts do not tell of the stand's own rules: %v", err)
	}
}

// wantPageCache wants that figures of a machine that reads from the host's memory are labelled, and others are
// not.
func (s *site) wantPageCache(bundle, fromMemory string) {
	t := s.T
	t.Helper()
	text, err := os.ReadFile(filepath.Join(bundle, "trials.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	cached, trials := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(text)) {
		var one struct {
			Test, Setting string
			Error         string
			Moved         struct{ Read int64 }
			Labels        []struct{ Name, Why string }
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		if one.Test != "disk" {
			continue
		}
		if one.Error != "" || one.Moved.Read == 0 {
			t.Errorf("%s: %d bytes, %s", one.Setting, one.Moved.Read, one.Error)
		}
		trials[one.Setting]++
		for _, l := range one.Labels {
			if l.Name == "page-cache" {
				cached[one.Setting]++
				if cached[one.Setting] == 1 {
					t.Log(one.Setting, l.Why)
				}
			}
		}
	}
	if len(trials) != 5 {
		t.Errorf("the disk was read in the settings %v", trials)
	}
	for setting, n := range trials {
		if want := map[bool]int{true: n}[setting == fromMemory]; cached[setting] != want {
			t.Errorf("%s: %d of %d trials have the label page-cache, not %d", setting, cached[setting], n, want)
		}
	}
}
