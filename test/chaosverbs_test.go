package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const chaosTwin = "t"

// act runs a command on the site, with or without a mishap, and sometimes up directly afterwards.
func (c *chaos) act() {
	c.Helper()
	c.now.read(c)
	args := c.choose()
	r, mishap := c.befall(args)
	c.tell(args, mishap, r.status)
	c.wantSaid(r, mishap)
	c.remember(args, r)
	if all := c.writers("store"); len(all) > 1 {
		c.Errorf("after %s the volume can be written by %v", strings.Join(args, " "), all)
	}
	if mishap != "" && c.random.IntN(3) == 0 {
		c.mended()
	}
}

// choose returns a command that is possible in the current state.
func (c *chaos) choose() []string {
	c.Helper()
	staged, live, former, trial := c.atReleases()
	release := fmt.Sprint(701 + c.random.IntN(3))
	var all [][]string
	may := func(weight int, args ...string) {
		for range weight {
			all = append(all, args)
		}
	}
	may(2, "up")
	may(1, "down")
	may(1, "down", []string{"web1", "store"}[c.random.IntN(2)])
	may(1, "stop")
	may(1, "start")
	may(1, "resume")
	may(2, "exec", "all", "--", "systemctl", "is-active", "ssh")
	may(1, "cp", filepath.Join(c.dir, "site.toml"), "store:/srv/data/")
	may(1, "cp", "store:/etc/ssh", c.TempDir()+"/")
	may(2, "snapshot", "--json")
	may(2, "backup", filepath.Join(c.dirs.State, "backups")+"/")
	may(1, "twin", "create", c.dir, chaosTwin, "--only", "web0", "--only", "store", "--volumes",
		[]string{"snapshot", "empty"}[c.random.IntN(2)])
	may(1, "twin", "create", c.dir, chaosTwin, "--only", "web1", "--expires", "2s")
	if len(glob(c.dirs.Site(c.name)+"."+chaosTwin)) > 0 {
		may(2, "twin", "destroy", chaosTwin)
	}
	if release != live {
		may(4, "stage", "--release", release)
	}
	for _, s := range staged {
		may(3, "switch", "--release", s)
		may(1, "switch", "--release", s, "--confirm-within", "2s")
		may(1, "switch", "--release", s, "--confirm-within", "10m", "--confirm-by", "hand")
	}
	if former {
		may(4, "rollback")
	}
	if trial {
		may(3, "confirm")
	}
	may(1, "release", "prune", "--keep", "0")
	for what := range c.kept {
		args := strings.Fields(what)
		if args[0] == "restore" {
			may(1, append(slices.Clone(args), "--node", "store", "--replace", "--yes-replace", c.name)...)
			args = append(args, "--dir", c.dir, "--replace", "--yes-replace", c.name)
		} else {
			may(1, "snapshot", "rm", args[2])
			args = append(args, "--yes-restore", c.name)
		}
		may(1, args...)
	}
	// The keys of c.kept come in any order.
	slices.SortStableFunc(all, func(a, b []string) int { return slices.Compare(a, b) })
	switch c.random.IntN(6) {
	case 0:
		c.change()
		return []string{"up"}
	case 1, 2:
		return c.turn()
	}
	return all[c.random.IntN(len(all))]
}

// turn prepares a switch, a rollback or a confirmation and returns its arguments. If none is
// possible, it returns the arguments of a command that lists the releases.
func (c *chaos) turn() []string {
	c.Helper()
	c.whole("up")
	_, live, former, trial := c.atReleases()
	if trial {
		return []string{"confirm"}
	}
	if former && c.random.IntN(2) == 0 {
		return []string{"rollback"}
	}
	for _, n := range []string{"701", "702", "703"} {
		if n != live && !c.formerly(n) {
			// Even if it was staged: a release that was live and went back has lost its copies of
			// volumes.
			c.whole("stage", "--release", n)
			return []string{"switch", "--release", n}
		}
	}
	return []string{"release", "ls"}
}

// formerly reports whether a rollback returns to a release. There may be several such releases,
// each with some of the nodes.
func (c *chaos) formerly(release string) bool {
	c.Helper()
	for n, r := range c.site.releases() {
		if r.Former && fmt.Sprint(n) == release {
			return true
		}
	}
	return false
}

// atReleases returns the releases that can be switched to, the live one, and whether a rollback or
// a trial exists.
func (c *chaos) atReleases() (staged []string, live string, former, trial bool) {
	c.Helper()
	for n, r := range c.site.releases() {
		switch {
		case slices.Contains(r.Live, "store"): // nodes that a release does not declare are live as they are
			live = fmt.Sprint(n)
		case len(r.Quarantine) == 3 && !r.Former:
			staged = append(staged, fmt.Sprint(n))
		}
		former = former || r.Former
		trial = trial || r.Trial
	}
	slices.Sort(staged)
	return staged, live, former, trial
}

// change edits the site directory: the content of a template or layer, a limit, or which nodes
// there are.
func (c *chaos) change() {
	c.Helper()
	c.edition++
	what := c.random.IntN(4)
	text := fmt.Sprint(c.edition)
	switch what {
	case 0:
		c.write("roles/ledger/edition.tmpl", text+"\n")
	case 1:
		c.write("roles/greeter/greeter.py", greeterSays("one")+"# "+text+"\n")
	case 2:
		file, _ := os.ReadFile(filepath.Join(c.dir, "site.toml"))
		old, other := "96MiB", "112MiB"
		if strings.Contains(string(file), other) {
			old, other = other, old
		}
		c.edit("site.toml", old, other)
	case 3:
		file, _ := os.ReadFile(filepath.Join(c.dir, "site.toml"))
		old, other := "[release.702]", "[node.more]\nid = 120\n[release.702]"
		if strings.Contains(string(file), other) {
			old, other = other, old
		}
		c.edit("site.toml", old, other)
	}
	c.said = append(c.said, "edit of "+[]string{"a template", "what is in a layer", "memory",
		"which nodes there are"}[what])
}

// remember records which lines a snapshot or a backup contains, and what a restore may have brought
// back.
func (c *chaos) remember(args []string, r result) {
	c.Helper()
	switch {
	case args[0] == "snapshot" && args[1] == "--json" && r.status == 0:
		var made struct{ ID string }
		if err := json.Unmarshal(replied(r.out), &made); err != nil || made.ID == "" {
			c.Errorf("snapshot --json: %v\n%s", err, r.out)
		}
		c.kept["snapshot restore "+made.ID] = c.now.lines
	case args[0] == "snapshot" && args[1] == "rm": // it is removed, or may be
		delete(c.kept, "snapshot restore "+args[2])
	case args[0] == "backup" && r.status == 0:
		of := c.backupsOf(args[1])
		c.kept["restore "+args[1]+"@"+of[len(of)-1].ID] = c.now.lines
	case args[0] == "snapshot" && args[1] == "restore":
		c.now.instead = append(c.now.instead, c.kept[strings.Join(args[:3], " ")])
	case args[0] == "restore":
		c.now.instead = append(c.now.instead, c.kept[strings.Join(args[:2], " ")])
		c.now.restoring = args
		if r.status == 0 {
			c.now.restoring = nil
		}
	}
	if r.status == 0 && len(c.now.instead) > 0 && (args[0] == "restore" || len(args) > 1 && args[1] == "restore") {
		c.now.lines, c.now.instead = c.now.instead[len(c.now.instead)-1], nil
	}
}
