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

const stateSite = `
site.name = "it-farstate"
[host.sv1]
address = "SV1"
[host.sv2]
address = "SV2"
[network.lan]
subnet = "10.99.251.0/24"
[image.debian]
suite = "bookworm"
[volume.data]
mirror = "/srv/orrery-copy"
every = "1h"
[secret.both]
generate = 24
[secret.alone]
generate = 24
[node.a]
id = 10
memory = "256MiB"
host = "sv1"
roles = ["keeper"]
[node.b]
id = 20
memory = "256MiB"
host = "sv2"
roles = ["keeper", "holder"]
`

// TestFarState: the state of a site on two hosts is the same from either control host: generated
// secrets, snapshots, and volumes.
func TestFarState(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-farstate", "10.77.1.", "10.99.251.")
	for role, text := range map[string]string{
		"keeper": "[[secret]]\nname = \"both\"\n[[volume]]\nname = \"data\"\npath = \"/data\"\n",
		"holder": "[[secret]]\nname = \"alone\"\n",
	} {
		dir := filepath.Join(s.dir, "roles", role)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "role.toml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	s.carryBoth(h.At, "/root/state", stateSite, hosts.AddressOf(2))
	says := func(on int, script string, words ...string) string {
		t.Helper()
		return s.ask(h.At(on), "/root/state", script, words...)
	}

	// Generated secrets have one value, stored where nodes need it.
	const kept = "/var/lib/orrery/sites/it-farstate/secrets"
	says(1, "orrery up", "status 0")
	says(1, "orrery exec all -- sha256sum /etc/orrery/secrets/both | cut -d ' ' -f 3 | sort | uniq -c | wc -l",
		"1\nstatus 0")
	says(1, "stat -c '%a %U %n' "+kept+"/*", "600 root "+kept+"/both\nstatus 0")
	says(2, "ls "+kept, "alone\nboth\nstatus 0")
	says(1, "sha256sum "+kept+"/both > /root/sum && rm -r "+kept+" && orrery down", "status 0")
	says(2, "orrery up", "status 0")
	says(1, "sha256sum -c /root/sum", "status 0")
	says(1, "orrery down > /dev/null; echo -n other > "+kept+"/both; orrery up",
		"hosts sv1 and sv2 keep different values of the generated secret both", "status 8")
	says(2, "cat "+kept+"/both | ssh sv1 tee "+kept+"/both | wc -c; orrery up", "24\n", "status 0")

	// Snapshots are taken at one moment on both hosts and restored on both, from either host. After
	// any kill, no node stays frozen and no incomplete snapshot is left.
	mark := func(text string) string {
		return "orrery exec all -- sh -c 'echo " + text + " > /data/mark; echo " + text + " > /etc/mark'"
	}
	const marks = "orrery exec all -- cat /data/mark /etc/mark | cut -d ' ' -f 3 | sort | uniq -c | sed 's/ *//'"
	says(1, mark("then"), "status 0")
	out := says(1, "orrery snapshot", "of 2 nodes and 2 volumes", "Skew between nodes: ", "status 0")
	t.Log(out)
	says(2, mark("now")+" && orrery snapshot ls", "  2  ", "status 0")
	says(2, "orrery snapshot restore $(orrery snapshot ls --json | sed -n 's/.*\"id\": \"\\(2[0-9-]*\\)\".*/\\1/p' | head -n 1) --yes-restore it-farstate",
		"it-farstate: 2 nodes as in snapshot", "status 0")
	says(1, marks, "4 then\nstatus 0")
	for _, after := range []string{"1.0"} {
		says(1, "orrery snapshot > /dev/null & sleep "+after+
			"; kill -9 $!; wait; for i in $(seq 100); do orrery snapshot --json > /dev/null && break; sleep 0.1; done",
			"status 0")
	}
	says(1, marks, "4 then\nstatus 0") // nodes are not frozen
	says(2, "orrery snapshot ls --json | grep -c lacking", "0\nstatus 1")

	// Volumes: each host has its own, and mirrors them as declared.
	says(2, "orrery volume ls --json", `"host": "sv1"`, `"host": "sv2"`, `"there": true`, "status 0")
	says(1, "orrery volume mirror && cat /srv/orrery-copy/a/mark && ssh sv2 cat /srv/orrery-copy/b/mark", "data of a: ",
		"data of b: ", "then\nthen\nstatus 0")
	says(2, "echo old > /srv/orrery-copy/b/mark; ls /srv/orrery-copy; cd /; orrery volume mirror --key it-farstate data; cat /srv/orrery-copy/b/mark",
		"b\ndata of b: ", "then\nstatus 0")
	says(1, "orrery volume ls --without sv2", "data    a", "volumes on host sv2 are left out", "status 0")
	says(2, "echo rot > /srv/orrery-copy/b/mark; orrery volume verify", "data of a: /srv/orrery-copy/a is the same",
		"data of b: /srv/orrery-copy/b differs", "status 11")
	says(1, "ls -A "+kept+"/../snapshots > /root/own; ssh sv2 ls -A "+kept+
		"/../snapshots | diff - /root/own && ! grep '^[.]' /root/own", "status 0")

	// Backups: one backup covers both hosts, and a second one stores only changes. Both hosts are
	// restored whichever was lost, including secrets.
	began := time.Now()
	says(1, mark("kept")+" && echo pass > /root/phrase && orrery backup /root/backups/ --secrets-passphrase-file /root/phrase",
		"2 nodes and 2 volumes", "The nodes were paused for", "status 0")
	says(1, "orrery backup /root/backups/ --json", `"nodes": 2`, "status 0")
	says(1, mark("lost")+" && orrery restore /root/backups --dir .",
		"the hosts already have 2 nodes and 2 volumes of it-farstate; nothing was done", "status 9")
	says(1, "orrery backup prune /root/backups --keep 2 && orrery backup verify /root/backups", "is whole", "status 0")
	says(1, "id=$(ls -tr /root/backups/backups | head -n 1); orrery restore /root/backups@${id%.json} --dir . --replace --yes-replace it-farstate --secrets-passphrase-file /root/phrase",
		"restored from", "status 0")
	says(2, marks, "4 kept\nstatus 0")
	says(1, mark("lost")+" && id=$(ls -tr /root/backups/backups | head -n 1); orrery restore /root/backups@${id%.json} --node b --replace --yes-replace it-farstate",
		"status 0")
	says(2, marks, "2 kept\n2 lost\nstatus 0")
	const from = "id=$(ls -tr /root/backups/backups | head -n 1); orrery restore /root/backups@${id%.json} --dir . --secrets-passphrase-file /root/phrase "
	says(1, from+"--to past", "it-farstate.past: restored from", "status 0")
	says(2, strings.Replace(marks, "orrery", "orrery --twin past", 1)+"; orrery twin destroy past", "4 kept\n", "status 0")
	says(1, mark("lost")+" && "+from+"--replace --yes-replace it-farstate --without sv2",
		"not restored, because they may be on sv2, whose state is unknown: b", "restored from", "status 0")
	says(2, marks, "2 kept\n2 lost\nstatus 0")
	says(1, "sha256sum -c /root/sum && ! ls -d "+kept+"/../restore", "status 0")
	t.Logf("backups took %s", time.Since(began).Round(100*time.Millisecond))
	says(2, "orrery down && ! ls "+kept+"/../unattended/mirror.json", "status 0")
}
