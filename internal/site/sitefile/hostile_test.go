package sitefile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/test/need"
)

const shadow = "root:$6$salt$hash:19000:0:99999:7:::\n"

// TestHostile: whatever a stranger's site directory contains, nothing outside of it is read, and
// reading it ends with a mistake.
//
// Promise (Files of strangers): A site directory cannot make Orrery read or quote anything outside
// it; reading it and filling its templates takes bounded memory. With site/sitefile.TestBombs,
// site/render.TestTemplatesEnd, cli.TestBound, site/sitefile.FuzzLoad, site/sitefile.FuzzRole.
func TestHostile(t *testing.T) {
	const head = "site.name = \"x\"\nimage.debian.suite = \"bookworm\"\n"
	const node = "node.one = { id = 1, roles = [\"x\"], requirements = \"pins.txt\" }\n"
	for name, c := range map[string]struct {
		files map[string]string // the prefix "->" makes a link, the content "fifo" a named pipe
		want  string
	}{
		"absolute requirements": {map[string]string{"site.toml": head + strings.Replace(node, "pins.txt", "OUTSIDE", 1)},
			`site.toml:3: requirements: "OUTSIDE" is outside the site directory (copy the file into the site directory and use that path)`},
		"requirements above": {map[string]string{"site.toml": head + strings.Replace(node, "pins.txt", "../shadow", 1)},
			`site.toml:3: requirements: "../shadow" is outside the site directory (`},
		"requirements linked": {map[string]string{"site.toml": head + node, "pins.txt": "->OUTSIDE"},
			`site.toml:3: requirements: DIR/pins.txt points outside the site directory (`},
		"linked directory": {map[string]string{"site.toml": head + strings.Replace(node, "pins.txt", "sub/shadow", 1),
			"sub": "->.."}, `site.toml:3: requirements: DIR/sub/shadow points outside the site directory (`},
		"requirements a pipe": {map[string]string{"site.toml": head + node, "pins.txt": "fifo"},
			`site.toml:3: requirements: DIR/pins.txt is not a file (`},
		"requirements endless": {map[string]string{"site.toml": head + node, "pins.txt": "->/dev/zero"},
			`site.toml:3: requirements: DIR/pins.txt points outside the site directory (`},
		"a near miss outside": {map[string]string{"site.toml": head + "image.b.import = \"../shado\"\n"},
			`site.toml:3: import: image PARENT/shado does not exist (create it or correct the path)`},
		"import a pipe": {map[string]string{"site.toml": head + "image.b.import = \"i.tar\"\n", "i.tar": "fifo"},
			`site.toml:3: import: DIR/i.tar is not a file (`},
		"import a device": {map[string]string{"site.toml": head + "image.b.import = \"/dev/zero\"\n"},
			`site.toml:3: import: /dev/zero is not an image (`},
		"import linked": {map[string]string{"site.toml": head + "image.b.import = \"i.tar\"\n",
			"i.tar": "->OUTSIDE"}, `site.toml:3: import: DIR/i.tar points outside the site directory (`},
		"ca": {map[string]string{"site.toml": head + "mirror.ca = \"OUTSIDE\"\n"},
			`site.toml:3: ca: "OUTSIDE" is outside the site directory (`},
		"key": {map[string]string{"site.toml": head + "mirror.key = \"k.asc\"\n", "k.asc": "->OUTSIDE"},
			`site.toml:3: key: DIR/k.asc points outside the site directory (`},
		"release": {map[string]string{"site.toml": head + "release.7.requirements = \"OUTSIDE\"\n"},
			`site.toml:3: requirements: "OUTSIDE" is outside the site directory (`},
		"site file a pipe": {map[string]string{"site.toml": "fifo"}, `site.toml: it is not a file (`},
		"site file linked": {map[string]string{"site.toml": "->OUTSIDE"},
			`site.toml: it points outside the site directory (`},
		"site file endless": {map[string]string{"site.toml": "->/dev/zero"},
			`site.toml: it points outside the site directory (`},
		"extends a pipe": {map[string]string{"site.toml": "extends = \"b\"\nsite.name = \"x\"\n", "b/site.toml": "fifo"},
			`b/site.toml: it is not a file (`},
		"extends linked": {map[string]string{"site.toml": "extends = \"b\"\nsite.name = \"x\"\n",
			"b/site.toml": "->OUTSIDE"}, `b/site.toml: it points outside the site directory (`},
		"extends a linked directory": {map[string]string{"site.toml": "extends = \"b\"\nsite.name = \"x\"\n", "b": "->/proc"},
			`site.toml:1: extends: b/site.toml does not exist (`},
		"role is all": {map[string]string{"site.toml": head, "roles/x": "->/"},
			`roles/x: it points outside the site directory (`},
		"roles are all": {map[string]string{"site.toml": head, "roles": "->/"},
			`roles: it points outside the site directory (`},
		"roles a pipe": {map[string]string{"site.toml": head, "roles": "fifo"}, `roles: it is not a directory (`},
		"role file a pipe": {map[string]string{"site.toml": head, "roles/x/role.toml": "fifo"},
			`roles/x/role.toml: it is not a file (`},
		"role file linked": {map[string]string{"site.toml": head, "roles/x/role.toml": "->OUTSIDE"},
			`roles/x/role.toml: it points outside the site directory (`},
		"template a pipe": {map[string]string{"site.toml": head, "roles/x/role.toml": "", "roles/x/a.tmpl": "fifo"},
			`roles/x/a.tmpl: it is not a file (`},
		"magic link": {map[string]string{"site.toml": head, "roles/x/role.toml": "",
			"roles/x/a": "->/proc/self/environ"}, `roles/x/a: it points outside the site directory (`},
		"a circle": {map[string]string{"site.toml": head, "roles/x/role.toml": "", "roles/x/a": "->a"},
			`roles/x/a: it points outside the site directory (`},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			outside, dir := filepath.Join(parent, "shadow"), filepath.Join(parent, "site")
			must(t, os.WriteFile(outside, []byte(shadow), 0o600))
			for name, content := range c.files {
				at := filepath.Join(dir, name)
				must(t, os.MkdirAll(filepath.Dir(at), 0o755))
				content = strings.ReplaceAll(content, "OUTSIDE", outside)
				switch to, link := strings.CutPrefix(content, "->"); {
				case link:
					must(t, os.Symlink(to, at))
				case content == "fifo":
					must(t, unix.Mkfifo(at, 0o600))
				default:
					must(t, os.WriteFile(at, []byte(content), 0o600))
				}
			}
			err := soon(t, dir)
			if err == nil {
				t.Fatal("no mistake")
			}
			got := strings.NewReplacer(dir, "DIR", outside, "OUTSIDE", parent, "PARENT").Replace(err.Error())
			if !strings.HasPrefix(got, c.want) || strings.Contains(got, "hash") ||
				problem.ExitCode(err) != int(problem.Mistake) {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// soon loads a site directory and checks that this does not take long.
func soon(t *testing.T, dir string) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { _, err := Load(dir); done <- err }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("no end")
		return nil
	}
}

// TestBombs: small files that expand to a large site are rejected with little memory and time.
func TestBombs(t *testing.T) {
	const head = "site.name = \"x\"\nimage.debian.suite = \"bookworm\"\n"
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	long := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct {
		site, role, pins string
		want             string
	}{
		"nested lists": {site: "a = " + strings.Repeat("[", need.Times(1<<20, 8<<20)),
			want: "site.toml:1: more than 64 nested lists or tables"},
		"nested tables": {site: "a = " + strings.Repeat("{a=", need.Times(1<<20, 4<<20)),
			want: "site.toml:1: more than 64 nested lists or tables"},
		"nested keys": {site: "a" + strings.Repeat(".a", need.Times(1<<20, 4<<20)) + " = 1",
			want: "site.toml:1: more than 64 nested tables"},
		"many values": {site: "a = [" + strings.Repeat("0,", 7<<20) + "]",
			want: "site.toml:1: more keys and values than any site needs"},
		"many lists": {site: "a = [" + strings.Repeat("[],", 5<<20) + "]",
			want: "site.toml:1: more keys and values than any site needs"},
		"many keys": {site: many(1<<20, "k%d=1\n"), want: "site.toml:20001: more than 20000 keys in one table"},
		"many tables": {site: head + many(need.Times(30_000, 300_000), "[host.h%d]\n"),
			want: "more than 1000 mistakes"},
		"arrays of tables": {role: many(100_000, "[[file]]\npath='/%d'\n"),
			want: "roles/x/role.toml: it has more than 1 MiB"},
		"arrays in a megab": {role: many(30_000, "[[file]]\npath='/%d'\n"),
			want: "keys in one table, or in a file with [[arrays of tables]]"},
		"a long name": {site: head + "[node.\"" + long + "{000000..099999}\"]\nid = 1\n",
			want: "has more than 200 characters"},
		"ranges": {site: head + many(need.Times(20, 2000), "[node.\"n%d-{00000..99999}\"]\n"),
			want: "the site has more than 100000 nodes"},
		"nodes on networks": {site: head + many(1000, "[network.n%d]\nsubnet = \"10.0.0.0/8\"\n") +
			"[node.\"n{00000..99999}\"]\nid = 2\n",
			want: "the nodes' networks, roles and groups are more than 2000000 in all"},
		"nodes of roles": {site: head + "[node.\"n{00000..99999}\"]\nid = 2\nroles = [" + many(1000, "\"r%d\",") + "]\n",
			want: "the nodes' networks, roles and groups are more than 2000000 in all"},
		"groups": {site: head + "[node.\"n{00000..99999}\"]\nid = 2\n" + many(need.Times(25, 5000),
			"[group.g%d]\nnodes=[\"*\"]\n"),
			want: "the nodes' networks, roles and groups are more than 2000000 in all"},
		"globs": {site: head + "[node.\"n{00000..99999}\"]\nid = 2\n[group.g]\nnodes=[" +
			many(need.Times(250, 5000), "\"*a*b*%d\",") + "]\n", want: "the groups take too long to evaluate"},
		"chain of groups": {site: head + "node.a.id = 2\n[group.g0]\n" +
			many(9000, "[group.g%[1]d-]\ngroups=[\"g%[1]d\"]\n"), want: ""},
		"many mistakes": {site: head + many(need.Times(2_000, 19_000), "k%d = 1\n"),
			want: "more than 1000 mistakes: the others are not shown"},
		"mistakes of nodes": {site: head +
			"[node.\"n{00000..99999}\"]\nid = 2\nhost = \"none\"\nroles = [\"p\", \"q\"]\ncpus = -1\n",
			want: `role "p" does not exist`},
		"near names": {site: head + many(need.Times(500, 20_000),
			"[host.h"+strings.Repeat("x", 50)+"%[1]d]\naddress=\"root@h%[1]d\"\n") + many(need.Times(500, 20_000),
			"[node.n%[1]d]\nid=%[1]d\nhost=\"hy"+strings.Repeat("x", 50)+"%[1]d\"\n"), want: "is not declared"},
		"circles of roles": {site: head, role: "needs.roles = [" + strings.Repeat("\"x\",", 10_000) + "]\n",
			want: "roles need one another"},
		"a long host": {site: head + "[node.\"n{00000..99999}\"]\nid = 2\nhost = \"" + long + "\"\n",
			want: "host has more than 16384 characters"},
		"a long network": {site: head + "[network." + long +
			"]\nsubnet = \"10.0.0.0/30\"\n[node.\"n{00000..99999}\"]\nid = 2\n", want: "has more than 200 characters"},
		"keys of a long": {site: head + "[node." + long + "]\n" + many(10_000, "k%d = 1\n"),
			want: "has more than 200 characters"},
		"continued lines": {site: head + "node.a = { id = 2, requirements = \"pins.txt\" }\n",
			pins: strings.Repeat("\\\n", 1<<19), want: ""},
		"lines of pins": {site: head + "node.a = { id = 2, requirements = \"pins.txt\" }\n",
			pins: strings.Repeat("a\n", 1<<19), want: "is not pinned"},
		"a huge number": {site: head + "[node.\"n{0..99999}\"]\nid = 9223372036854775807\n", want: "id"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := siteDir(t, map[string]string{"site.toml": c.site, "roles/x/role.toml": c.role, "pins.txt": c.pins})
			peak := watch()
			begun := time.Now()
			err := soon(t, dir)
			took, most := time.Since(begun), peak()
			t.Logf("%v, %d MiB", took.Round(time.Millisecond), most>>20)
			if (err == nil) != (c.want == "" && c.pins != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v", err)
			}
			if err != nil && len(err.Error()) > 4<<20 {
				t.Errorf("%d bytes of mistakes", len(err.Error()))
			}
			if most > 1<<30 {
				t.Errorf("it took %d MiB", most>>20)
			}
		})
	}
}

// watch starts measuring the heap and returns a function that returns its maximum size.
func watch() (peak func() uint64) {
	runtime.GC() // do not count earlier allocations
	var most atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			metrics.Read(sample)
			most.Store(max(most.Load(), sample[0].Value.Uint64()))
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); <-stopped; return most.Load() }
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
