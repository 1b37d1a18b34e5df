package docs_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/cli"
	"orrery/internal/cli/labverb"
	"orrery/internal/engine"
	"orrery/internal/host"
)

const survivingSite = `
site.name = "s"
image.debian.suite = "bookworm"
network.lan = { subnet = "10.99.1.0/24" }
secret.word.generate = 32
node.db = { id = 11, roles = ["db"], net.lan = "10.99.1.50" }
[release.700]
`

const survivingRole = `
[[volume]]
name = "data"
path = "/srv/data"
[[secret]]
name = "word"
[[file]]
path     = "/etc/db.conf"
template = "db.conf.tmpl"
`

// events are what happens in rows of the table that the machine in memory can show: edits of the
// site directory and command lines. The node is called db, and its id is 11, unless they say so.
var events = map[string]struct {
	edit, into string
	commands   []string
	name       string
	id         int
}{
	"`stop`, `start`, `restart`, a reboot": {commands: []string{"stop", "start", "restart", "resume"}},
	"a template, a boot step, a limit changes": {edit: `net.lan`, into: `memory = "64MiB", net.lan`,
		commands: []string{"up"}},
	"packages, files or build steps of a role change, or the image": {edit: `"bookworm"`, into: `"trixie"`,
		commands: []string{"up"}},
	"another address in the site file": {edit: "1.50", into: "1.51", commands: []string{"up"}},
	"another id, or another engine":    {edit: "id = 11", into: "id = 12", commands: []string{"up"}, id: 12},
	"another name":                     {edit: "node.db", into: "node.db2", commands: []string{"up"}, name: "db2"},
	"[`switch`](releases.md) to a release": {commands: []string{"stage --release 700", "switch --release 700"},
		id: 700011},
	"`rollback`":                  {commands: []string{"stage --release 700", "switch --release 700", "rollback"}},
	"`down`, then `up`":           {commands: []string{"down", "up"}},
	"`down --volumes`, then `up`": {commands: []string{"down --volumes --yes-volumes s", "up"}},
	"`down`, then `forget`": {commands: []string{"down --volumes --yes-volumes s",
		"forget s --yes-forget s", "up"}},
	"the node is removed from the site file": {edit: "node.db", into: "node.other", commands: []string{"up"}, name: "other"},
}

// TestSurvives: what the table says of private layers, volumes, secrets, keys and addresses is so.
func TestSurvives(t *testing.T) {
	rows := table(t, one(t, "docs/survives.md"), "what happens | private layer | volumes | generated secrets | SSH host key | addresses")
	checked := 0
	for _, row := range rows {
		e, ok := events[row[0]]
		if !ok {
			continue
		}
		checked++
		t.Run(row[0], func(t *testing.T) {
			s := newSession(t)
			m, dir := s.machine, s.dir
			put(t, dir, "site.toml", survivingSite)
			put(t, dir, "roles/db/role.toml", survivingRole)
			put(t, dir, "roles/db/db.conf.tmpl", "x\n")
			orrery := func(line string) string {
				var out bytes.Buffer
				args := append([]string{"-C", dir}, strings.Fields(line)...)
				if status := cli.RunOn(m, args, labverb.Lab{}, strings.NewReader(""), &out, &out); status != 0 {
					t.Fatalf("orrery %s: status %d: %s", line, status, out.String())
				}
				return out.String()
			}
			orrery("up")
			node := m.of("s").Runner(engine.Ref{Site: "s", Name: "db", ID: 11})
			if err := node.Put(t.Context(), host.File{Path: "/root/mark", Content: []byte("here"), Mode: 0o600}); err != nil {
				t.Fatal(err)
			}
			site := filepath.Join(m.dirs.State, "sites/s")
			volume := filepath.Join(site, "volumes/data/db/mark")
			put(t, filepath.Dir(volume), "mark", "here")
			before := [3]string{content(site, "secrets/word"), content(site, "keys/db/ssh_host_ed25519_key.pub"), "10.99.1.50"}
			if before[0] == "" || before[1] == "" {
				t.Fatal("the site has no secret or no key")
			}
			put(t, dir, "site.toml", strings.Replace(survivingSite, e.edit, e.into, 1))
			for _, line := range e.commands {
				orrery(line)
			}
			name, id := cmp.Or(e.name, "db"), cmp.Or(e.id, 11)
			status := orrery("status")
			var private bytes.Buffer
			_ = m.of("s").Runner(engine.Ref{Site: "s", Name: name, ID: id}).Run(t.Context(),
				host.Command{Args: []string{"cat", "/root/mark"}, Stdout: &private})
			key := "keys/" + name + "/ssh_host_ed25519_key.pub"
			if name == "other" { // what is kept is that of the node that was removed
				key = "keys/db/ssh_host_ed25519_key.pub"
			}
			for i, kept := range []bool{private.String() == "here", content(volume, "") == "here",
				content(site, "secrets/word") == before[0], content(site, key) == before[1],
				strings.Contains(status, "lan="+before[2])} {
				cell := row[i+1]
				if strings.HasPrefix(cell, "kept") && !kept || strings.HasPrefix(cell, "lost") && kept {
					t.Errorf("column %d: kept is %v, and the page says: %s", i+1, kept, cell)
				}
			}
		})
	}
	if checked != len(events) {
		t.Errorf("only %d of %d events are in the table", checked, len(events))
	}
}

// content returns the content of a file, or "" if it is not there.
func content(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	return string(text)
}
