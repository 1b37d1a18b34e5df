package lxc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/host/process"
)

// A liar is a process that a test invents.
type liar struct {
	pid, parent, group int
	uid                int
	user, space        string // its user and process id namespaces, or "" for the host's
	args               []string
}

// table writes a /proc directory with the given processes.
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
		put(who+"/status", fmt.Sprintf("Name:\tx\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", p.uid))
		put(who+"/stat", fmt.Sprintf("%d (x) y) S %d %d 1 0 -1 4194560", p.pid, p.parent, p.group))
	}
	return process.Table(dir)
}

// TestStarting: only processes of the host's root in its own namespaces count as starts that a
// killed run left, whatever other processes call themselves.
func TestStarting(t *testing.T) {
	const nodes = "/var/lib/orrery/sites/a/nodes"
	start := []string{"/usr/bin/lxc-start", "--daemon", "--name", "a-10", "--lxcpath", nodes + "/10"}
	for name, c := range map[string]struct {
		liar
		want bool
	}{
		"a start":              {liar{args: start}, true},
		"of nobody":            {liar{uid: 65534, args: start}, false},
		"in a node":            {liar{uid: 1900065536, user: "9", space: "9", args: start}, false},
		"in a privileged node": {liar{space: "9", args: start}, false},
		"root of its own":      {liar{user: "9", args: start}, false}, // unshare -r, by a user of the host
		"of another site":      {liar{args: []string{"lxc-start", "--lxcpath", nodes + "-b/nodes/10"}}, false},
		"below a node":         {liar{args: []string{"lxc-start", "--lxcpath", nodes + "/10/x"}}, false},
		"said to a command":    {liar{args: []string{"lxc-start", "--", "--lxcpath", nodes + "/10"}}, false},
		"a dead one":           {liar{args: nil}, false},
	} {
		c.pid = 7
		if got, err := anyStarting(table(t, c.liar), nodes); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestMonitors: a process is a node's monitor only if its title or arguments say exactly that, and
// it runs as root in the host's namespaces.
func TestMonitors(t *testing.T) {
	const dir = "/var/lib/orrery/sites/a/nodes/10"
	for _, c := range []struct {
		liar
		want bool
	}{
		{liar{args: []string{"[lxc monitor] " + dir + " a-10"}}, true},
		{liar{args: []string{"lxc-start", "--daemon", "--name", "a-10", "--lxcpath", dir}}, true},
		{liar{args: []string{"[lxc monitor] " + dir + "1 a-101"}}, false},
		{liar{args: []string{"[lxc monitor] /other/sites/a/nodes/10 a-10"}}, false}, // in another state directory
		{liar{args: []string{"lxc-start", "--daemon", "--name", "a-101", "--lxcpath", dir + "1"}}, false},
		{liar{args: []string{"vi", "a-10"}}, false},
		{liar{uid: 65534, args: []string{"[lxc monitor] " + dir + " a-10"}}, false},
		{liar{space: "9", args: []string{"[lxc monitor] " + dir + " a-10"}}, false},
	} {
		c.pid = 7
		who, ok := table(t, c.liar).Task(7)
		if got := ok && isMonitor(who, dir, "a-10"); got != c.want {
			t.Errorf("%+v: %v", c.liar, got)
		}
	}
}
