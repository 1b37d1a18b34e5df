package cgroup

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/site"
	"orrery/test/need"
)

// TestGroupsBelow checks that version 2 limits the number of groups below a node's group.
func TestGroupsBelow(t *testing.T) {
	need.Integration(t)
	at := hostMount
	if beside := hostMount + "/unified"; isV2(string(beside)) {
		at = beside // like a host with version 2 only
	}
	if !isV2(string(at)) {
		t.Skip("this host has no cgroup v2")
	}
	g := Group{at, "orrery/it-cgroup/4"}
	t.Cleanup(func() { Remove(g); RemoveEmpty("it-cgroup") })
	must(t, g.Create())
	for _, f := range at.limitFiles(site.Limits{}) {
		must(t, os.WriteFile(g.file(f.Controller, f.Name), []byte(f.Value), 0))
	}
	var err error
	made := 0
	for ; err == nil && made <= 2*maxSubgroups; made++ {
		err = os.Mkdir(g.file("", "g"+strconv.Itoa(made)), 0o755)
	}
	if !errors.Is(err, unix.EAGAIN) || made-1 != maxSubgroups {
		t.Errorf("%d groups could be made: %v", made-1, err)
	}
	Remove(g)
	if _, err := os.Stat(g.file("", "")); !os.IsNotExist(err) {
		t.Errorf("the group was not removed: %v", err)
	}
}

// TestEqualPins checks that pins are compared as the kernel does, in any notation. A pin to all
// processors equals no pin.
func TestEqualPins(t *testing.T) {
	all := onlineCpus()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0,1", "0-1", true}, {"1,0", "0-1", true}, {"3,0-2", "0-3", true}, {"0", "1023", false}, {all, "", true},
		{"", all, true}, {"1000", "", false},
	} {
		if got := equal(site.Limits{Pin: c.a}, site.Limits{Pin: c.b}); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}
