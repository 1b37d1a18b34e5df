package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPin: a pin to processors is the same however it is written, even one to all existing
// processors. Nodes start, and nothing is left to do.
func TestPin(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.TrimSpace(string(text))
	list := all
	if first, last, many := strings.Cut(all, "-"); many && first == "0" && last == "1" {
		list = "1,0"
	}
	s := newSite(t, "it-pin", fmt.Sprintf(`
network = {}
[image.debian]
suite = "bookworm"
[node.every]
id = 10
pin = %q
[node.list]
id = 11
pin = %q
[node.one]
id = 12
pin = "0,0-0"
[node.none]
id = 13
`, all, list), nil)
	s.do("up")
	s.settled()
	const allowed = "grep Cpus_allowed_list /proc/self/status | cut -f2"
	for node, want := range map[string]string{"every": all, "list": all, "one": "0", "none": all} {
		if got := s.sh(node, allowed); got != want {
			t.Errorf("%s runs on processors %s, want %s", node, got, want)
		}
	}

	// Changing or removing the pin disturbs no node.
	before := s.init("list")
	s.edit("site.toml", fmt.Sprintf("pin = %q\n[node.one]", list), "pin = \"0\"\n[node.one]")
	s.wantPlan("limit list")
	s.do("up")
	s.settled()
	s.edit("site.toml", "pin = \"0\"\n[node.one]", "[node.one]")
	s.do("up")
	s.settled()
	if after := s.init("list"); after != before || s.sh("list", allowed) != all {
		t.Errorf("init of list was %s and is %s", before, after)
	}
}
