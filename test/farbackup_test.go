package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/test/hosts"
	"orrery/test/need"
)

const withSite = `
site.name = "it-farwith"
network.lan.subnet = "10.99.252.0/24"
image.debian.suite = "bookworm"
host.sv1.address = "SV1"
host.sv2.address = "SV2"
volume.data = {}
node.a = { id = 10, host = "sv1", memory = "256MiB", roles = ["stamped"] }
node.b = { id = 20, host = "sv2", memory = "256MiB", roles = ["stamped"] }
`

// stampedRole makes a layer that differs each time that it is built.
const stampedRole = `
[[volume]]
name = "data"
path = "/data"
[[step]]
name = "stamp"
when = "build"
script = "mkdir /opt/stamped; od -An -N16 -tx1 /dev/urandom >/opt/stamped/stamp"
`

// TestFarBackupWith: a backup of two hosts contains each layer, from one of them, and the
// snapshots. Hosts that have lost both get them back: layers if the user asks for it, snapshots
// wherever their nodes are now.
func TestFarBackupWith(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-farwith", "10.77.1.", "10.99.252.")
	role := filepath.Join(s.dir, "roles", "stamped")
	if err := os.MkdirAll(role, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(role, "role.toml"), []byte(stampedRole), 0o644); err != nil {
		t.Fatal(err)
	}
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	s.carryBoth(h.At, "/root/with", withSite, hosts.AddressOf(2))
	says := func(on int, script string, words ...string) string {
		t.Helper()
		return s.ask(h.At(on), "/root/with", script, words...)
	}
	mark := func(text string) string {
		return "orrery exec all -- sh -c 'echo " + text + " > /data/mark; echo " + text + " > /etc/mark'"
	}
	const (
		marks   = "orrery exec all -- cat /data/mark /etc/mark | cut -d ' ' -f 3 | sort | uniq -c | sed 's/ *//'"
		stamps  = "orrery exec all -- cat /opt/stamped/stamp 2>/dev/null | sed 's/^[a-b]: //; s/ //g' | sort" // without notices of slow logins
		kept    = "/var/lib/orrery/sites/it-farwith/snapshots"
		drop    = `rm -r $(dirname $(grep -l "debian + stamped" /var/lib/orrery/store/*/layer.json))`
		lose    = "orrery down && rm -r " + kept + " && " + drop + " && ssh sv2 'rm -r " + kept + " && " + drop + "'"
		putBack = "orrery snapshot restore $(orrery snapshot ls --json | sed -n 's/.*\"id\": \"\\(2[0-9-]*\\)\".*/\\1/p' | head -n 1) --yes-restore it-farwith"
		restore = "orrery restore /root/backups --dir . --replace --yes-replace it-farwith"
	)
	says(1, "orrery up && "+mark("past")+" && orrery snapshot && "+mark("kept"), "status 0")
	stamp := says(1, stamps, "status 0")
	began := time.Now()
	says(1, "orrery backup /root/backups/ --with-layers --snapshots", "2 nodes and 2 volumes",
		"The nodes were paused for", "status 0")
	says(1, "orrery backup ls /root/backups && orrery backup verify /root/backups", "layers", "is whole", "status 0")
	out := says(1, "cp -r /root/backups /root/copy && for b in /root/copy/blocks/*/*; do echo rot > $b; done; orrery backup repair /root/copy",
		"damaged in /root/copy", "added")
	for _, tree := range []string{"site: ", "volume data", "layer/", "snapshot/"} {
		if strings.Contains(out, tree) { // nodes may have written to their own files since
			t.Errorf("%s was not repaired:\n%s", tree, out)
		}
	}
	t.Logf("the backup took %s", time.Since(began).Round(100*time.Millisecond))

	says(1, mark("lost")+" && "+lose, "status 0")
	says(1, restore, "(--trust-layers uses those of a backup that you made)", "restored from", "status 0")
	says(1, marks, "4 kept\nstatus 0")
	if again := says(1, stamps, "status 0"); again == stamp {
		t.Errorf("without --trust-layers, nodes stand on the layer in the backup:\n%s", again)
	}

	says(1, lose, "status 0")
	says(1, restore+" --trust-layers", "restored from", "status 0")
	says(1, marks, "4 kept\nstatus 0")
	if again := says(1, stamps, "status 0"); again != stamp {
		t.Errorf("nodes stand on another layer than was backed up:\n%s%s", stamp, again)
	}
	says(2, putBack, "it-farwith: 2 nodes as in snapshot", "status 0")
	says(1, marks, "4 past\nstatus 0")

	// The nodes exchange their hosts, and their parts of the snapshot move along.
	says(1, `sed -i 's/10, host = "sv1"/10, host = "sv2"/; s/20, host = "sv2"/20, host = "sv1"/' site.toml && `+
		mark("lost")+" && "+lose, "status 0")
	says(1, restore+" --trust-layers", "differs from the one in the backup", "restored from", "status 0")
	says(1, marks, "4 kept\nstatus 0")
	says(1, "cd "+kept+" && ls */nodes && ssh sv2 'cd "+kept+" && ls */nodes'", "20\n10\nstatus 0")
	says(1, putBack, "it-farwith: 2 nodes as in snapshot", "status 0")
	says(1, marks, "4 past\nstatus 0")
	if again := says(1, stamps, "status 0"); again != stamp || strings.Count(again, "\n") != 2 {
		t.Errorf("nodes stand on another layer than was backed up:\n%s%s", stamp, again)
	}
	says(1, "! ls -d "+kept+"/../restore && orrery down", "status 0")
}
