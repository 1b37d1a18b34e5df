package test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/test/hosts"
	"orrery/test/need"
)

const moveSite = `
site.name = "it-move"
[host.sv1]
address = "SV1"
[host.sv2]
address = "SV2"
[network.lan]
subnet = "10.99.248.0/24"
gateway = "10.99.248.1"
mtu = 1450
[image.debian]
suite = "bookworm"
[volume.data]
[node.a]
id = 11
memory = "256MiB"
roles = ["keep"]
[node.b]
id = 12
memory = "256MiB"
host = "sv2"
[release.700]
`

const keepRole = `[[volume]]
name = "data"
path = "/data"
`

// TestMove: a node moves from host to host with its data, its volume and its identity, while
// another node talks to it. Wherever the move is killed, the node is on one host, and the next run
// from any control host finishes the move.
func TestMove(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-move", "10.77.1.", "10.99.248.")
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	s.write("roles/keep/role.toml", keepRole)
	s.carryBoth(h.At, "/root/move", moveSite, hosts.AddressOf(2))
	says := func(on int, script string, words ...string) string {
		t.Helper()
		return s.ask(h.At(on), "/root/move", script, words...)
	}
	const who = `orrery exec a -- sh -c 'cat /etc/machine-id /sys/class/net/eth0/address /etc/ssh/ssh_host_ed25519_key.pub; ip -br -4 address show eth0 | sed s/@if[0-9]*//'`
	says(1, "orrery up", "status 0")
	says(1, "orrery status", "a ", "sv1", "status 0")
	before := says(1, who, "status 0")
	says(1, `orrery exec a -- sh -c 'echo written > /root/f; ln /root/f /root/g; rm /etc/motd; dd if=/dev/urandom of=/data/big bs=1M count=20 2>&1; sha256sum /data/big > /data/sum; truncate -s 1G /data/holes'`,
		"status 0")
	says(1, "orrery move a --to sv9", `no host is called "sv9"`, "status 2")
	says(1, "orrery move b --to sv1", "is declared on host sv2", "orrery move b --to sv1", "status 3")
	says(1, "orrery move a --to sv2 --plan", "copy       node a: moves here from host sv1", "receive    node a",
		"status 0")
	says(1, "orrery exec b -- ping -c1 -W5 10.99.248.11", "1 received", "status 0")

	says(2, "echo nameserver 10.99.0.53 > /etc/resolv.conf", "status 0")
	moved := says(1, "orrery move a --to sv2", "a is on host sv2; it was away for ", "status 0")
	t.Log(regexp.MustCompile(`a is on host.*`).FindString(moved))
	const kept = `orrery exec a -- sh -c 'cat /root/g; ls /etc/motd 2>&1; sha256sum -c /data/sum; stat -c "%b %s" /data/holes'`
	says(1, kept, "written", "No such file", "big: OK", "0 1073741824", "status 0")
	says(1, "orrery exec a -- cat /etc/resolv.conf", "nameserver 10.99.0.53", "status 0")
	if after := says(1, who, "status 0"); after != before {
		t.Errorf("it is\n%s\nand was\n%s", after, before)
	}
	says(1, "orrery exec b -- ping -c3 -W5 10.99.248.11", "received", "status 0")
	says(2, "orrery plan", "nothing to do", "status 0")
	says(1, "orrery move a --to sv2", "nothing to do: all selected nodes are already on that host", "status 0")
	left := "find /var/lib/orrery/sites/it-move -path '*/nodes/11' -o -path '*/arrivals/*' -o -path '*/volumes/data/a' -o -path '*/keys/a'"
	if out := says(1, left); strings.Contains(out, "/") {
		t.Errorf("left on host 1 is %s", out)
	}

	// The node moves back and forth. Each time, a kill happens at the end of another step: on the
	// control host, or on the receiving host.
	to := []string{"sv2", "sv1"}
	moments := []string{"handing over", "receiving", "sending the rest of", "copying", "stopping", "starting",
		"cleaning up"}
	for i, when := range moments[:need.Kills(3, len(moments))] {
		victim := "kill -9 $(cat /tmp/move.pid)"
		if i%2 == 1 {
			victim = "ssh -o BatchMode=yes " + hosts.AddressOf(2) + " pkill -9 -x orrery; kill -9 $(cat /tmp/move.pid)"
		}
		script := `rm -f /tmp/move.pid; sh -c 'echo $$ > /tmp/move.pid; exec orrery move a --to ` + to[(i+1)%2] + `' 2>&1 |
			while read -r line; do case "$line" in *"` + when + ` node a"*) ` + victim + ` 2>/dev/null;; esac; done; true`
		says(1, script, "status 0")
		holders := 0
		for on := 1; on <= 2; on++ {
			holders += strings.Count(says(on,
				"for d in /var/lib/orrery/sites/it-move/nodes/11; do [ -e $d/node.json ] && [ ! -e $d/given.json ] && echo holds; done; true"),
				"holds")
		}
		running := 0
		for on := 1; on <= 2; on++ {
			running += strings.Count(says(on, "pgrep -f '[i]t-move-11' > /dev/null && echo runs; true"), "runs")
		}
		if holders > 1 || running > 1 {
			t.Errorf("after a kill when it was %s, %d hosts have it and %d run it", when, holders, running)
		}
		on := 1 + i%2
		if i%3 == 2 {
			says(on, "for i in $(seq 100); do orrery up && break; sleep 0.2; done", "status 0")
		} else {
			says(on, "for i in $(seq 100); do orrery move a --to "+to[(i+1)%2]+" && break; sleep 0.2; done", "status 0")
		}
		says(on, "orrery plan", "nothing to do", "status 0")
		says(on, kept, "written", "big: OK", "0 1073741824", "status 0")
	}

	// Instances of other releases move along with the node: staged ones, and the one that a
	// rollback returns to.
	says(1, "orrery move a --to sv1", "status 0")
	says(1, "orrery stage --release 700", "status 0")
	s.share("releases.lock", h.At(1), h.At(2), "/root/move")
	says(1, "orrery exec --release 700 a -- sh -c 'echo staged > /root/g'", "status 0")
	for i, verb := range []string{"switch --release 700", "rollback"} {
		says(1, "orrery move a --to "+to[i], "is stopped there in quarantine", "status 0")
		says(2, "orrery plan", "nothing to do", "status 0")
		says(2, "orrery "+verb, "status 0")
		says(1, "orrery plan", "nothing to do", "status 0")
		says(1, "orrery exec a -- sh -c 'cat /root/g; sha256sum -c /data/sum'", []string{"staged", "written"}[i], "big: OK",
			"status 0")
	}
	says(1, "sh -c 'echo $$ > /tmp/move.pid; exec orrery move a --to sv2' 2>&1 | while read -r line; do case \"$line\" in *\"handing over node a\"*) kill -9 $(cat /tmp/move.pid) 2>/dev/null;; esac; done; true",
		"status 0")
	says(1, "for i in $(seq 100); do orrery move a --to sv2 && break; sleep 0.2; done", "status 0")
	says(1, "orrery plan", "nothing to do", "status 0")
	says(1, kept, "written", "big: OK", "status 0")
	says(2, "orrery down --volumes --yes-volumes it-move", "status 0")
	for i := 1; i <= 2; i++ {
		out, err := h.At(i).Output("/bin/sh", "-c",
			"ip -br link | grep orb; ls -A /var/lib/orrery/sites/it-move/nodes /var/lib/orrery/sites/it-move/arrivals 2>/dev/null | grep -v :; nft list tables | grep orrery; true")
		if err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("left on host %d is %q (%v)", i, out, err)
		}
	}
}
