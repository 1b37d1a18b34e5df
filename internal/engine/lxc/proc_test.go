package lxc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host/process"
)

// A liar is a process that a test makes up.
type liar struct {
	pid, parent, group int
	uid                int
	user, space        string // its namespaces of users and process ids; "": the host's
	args               []string
	env                string
}

// table makes a /proc of processes.
func table(t *testing.T, all ...liar) process.Table {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	spaces := func(who, user, pid string) {
		must(t, os.MkdirAll(filepath.Join(dir, who, "ns"), 0o755))
		must(t, os.Symlink("user:["+user+"]", filepath.Join(dir, who, "ns/user")))
		must(t, os.Symlink("pid:["+pid+"]", filepath.Join(dir, who, "ns/pid")))
	}
	spaces("self", "1", "2")
	for _, p := range all {
		who := fmt.Sprint(p.pid)
		user, space := "1", "2"
		if p.user != "" {
			user = p.user
		}
		if p.space != "" {
			space = p.space
		}
		spaces(who, user, space)
		put(who+"/cmdline", strings.Join(p.args, "\x00")+"\x00")
		put(who+"/environ", p.env)
		put(who+"/status", fmt.Sprintf("Name:\tx\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", p.uid))
		put(who+"/stat", fmt.Sprintf("%d (x) y) S %d %d 1 0 -1 4194560", p.pid, p.parent, p.group))
	}
	return process.Table(dir)
}

// TestLeftovers: only what root of the host runs in its own namespaces counts as left by a killed run, whatever others call themselves.
func TestLeftovers(t *testing.T) {
	const nodes = "/var/lib/orrery/sites/a/nodes"
	start := []string{"/usr/bin/lxc-start", "--daemon", "--name", "a-10", "--lxcpath", nodes + "/10"}
	attach := func(id string) []string {
		return []string{"lxc-attach", "--name", "a-" + id, "--lxcpath", nodes + "/" + id, "--", "sleep", "60"}
	}
	for name, c := range map[string]struct {
		all      []liar
		starting bool
		commands []int
	}{
		"a start":              {[]liar{{pid: 7, args: start}}, true, nil},
		"of nobody":            {[]liar{{pid: 7, uid: 65534, args: start}}, false, nil},
		"in a node":            {[]liar{{pid: 7, uid: 1900065536, user: "9", space: "9", args: start}}, false, nil},
		"in a privileged node": {[]liar{{pid: 7, space: "9", args: start}}, false, nil},
		"root of its own":      {[]liar{{pid: 7, user: "9", args: start}}, false, nil}, // unshare -r, by a user of the host
		"of another site":      {[]liar{{pid: 7, args: []string{"lxc-start", "--lxcpath", nodes + "-b/nodes/10"}}}, false, nil},
		"below a node":         {[]liar{{pid: 7, args: []string{"lxc-start", "--lxcpath", nodes + "/10/x"}}}, false, nil},
		"said to a command":    {[]liar{{pid: 7, args: []string{"lxc-start", "--", "--lxcpath", nodes + "/10"}}}, false, nil},
		"a dead one":           {[]liar{{pid: 7, args: nil}}, false, nil},
		"an orphan": {[]liar{
			{pid: 7, parent: 1, group: 7, args: attach("10"), env: "A=b\x00" + caller + "99\x00"},
			{pid: 8, parent: 7, group: 7, uid: 1900065536, user: "9", space: "9", args: []string{"sleep"}}, {pid: 9, parent: 1, group: 77},
		}, false, []int{8}},
		"a lonely orphan": {[]liar{{pid: 7, parent: 1, group: 7, args: attach("10"), env: caller + "99\x00"}}, false, []int{7}},
		"waited for":      {[]liar{{pid: 7, parent: 99, group: 7, args: attach("10"), env: caller + "99\x00"}}, false, nil},
		"a false orphan": {[]liar{{pid: 7, parent: 1, group: 7, space: "9", args: attach("10"), env: caller + "99\x00"},
			{pid: 8, parent: 7, group: 7, args: []string{"sleep"}}}, false, nil},
	} {
		starting, commands, err := leftovers(table(t, c.all...), nodes)
		if err != nil || starting != c.starting || !slices.Equal(commands, c.commands) {
			t.Errorf("%s: %v %v, %v", name, starting, commands, err)
		}
	}
}

// TestMonitors: a process is the monitor of a node if it says exactly that, and is believed.
func TestMonitors(t *testing.T) {
	const dir = "/var/lib/orrery/sites/a/nodes/10"
	for _, c := range []struct {
		liar
		want bool
	}{
		{liar{args: []string{"[lxc monitor] " + dir + " a-10"}}, true},
		{liar{args: []string{"lxc-start", "--daemon", "--name", "a-10", "--lxcpath", dir}}, true},
		{liar{args: []string{"[lxc monitor] " + dir + "1 a-101"}}, false},
		{liar{args: []string{"[lxc monitor] /other/sites/a/nodes/10 a-10"}}, false}, // of another state directory
		{liar{args: []string{"lxc-start", "--daemon", "--name", "a-101", "--lxcpath", dir + "1"}}, false},
		{liar{args: []string{"vi", "a-10"}}, false},
		{liar{uid: 65534, args: []string{"[lxc monitor] " + dir + " a-10"}}, false},
		{liar{space: "9", args: []string{"[lxc monitor] " + dir + " a-10"}}, false},
	} {
		c.pid = 7
		who, ok := table(t, c.liar).Task(7)
		if got := ok && monitors(who, dir, "a-10"); got != c.want {
			t.Errorf("%+v: %v", c.liar, got)
		}
	}
}
