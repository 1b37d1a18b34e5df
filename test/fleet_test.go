package test

import (
	"path/filepath"
	"testing"

	"orrery/test/hosts"
	"orrery/test/need"
)

const fleetSite = `
site.name = "it-fleet"
[host.sv1]
address = "SV1"
[host.sv2]
address = "SV2"
[network.one]
subnet = "10.99.241.0/24"
gateway = "10.99.241.1"
[network.two]
subnet = "10.99.242.0/24"
gateway = "10.99.242.1"
[image.debian]
suite = "bookworm"
[node.a]
id = 10
memory = "256MiB"
host = "sv1"
net.one = "auto"
[node.b]
id = 20
memory = "256MiB"
host = "sv2"
net.two = "auto"
`

// TestFleet: a site on two hosts is started from one of them, which reaches the other without being
// root there. It is completed after any killed or stalled run, even from the other host, and
// nothing is left of it.
func TestFleet(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-fleet", "10.77.1.", "10.99.241.")
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	if err := h.At(2).AddUser("ada", true); err != nil {
		t.Fatal(err)
	}
	s.carryBoth(h.At, "/root/fleet", fleetSite, "ada@"+hosts.AddressOf(2))
	says := func(on int, script string, words ...string) {
		t.Helper()
		s.ask(h.At(on), "/root/fleet", script, words...)
	}
	says(1, "orrery host check", "sv2", "  fit", "status 0")
	says(1, "orrery check --survive 1", "without sv1: of 1 node, 0 fit on the other hosts",
		"a does not fit: it is tied to that host", "status 4")
	says(1, "orrery up", "b ", "sv2", "running", "status 0")
	says(1, "orrery plan", "nothing to do", "status 0")
	says(1, "orrery exec all -- hostname", "a | a", "b | b", "status 0")

	// The login of the run before is reused, unless it is not kept. A run makes a new one if the machine stalls so long
	// that the login seems dead.
	const kept = "kept() { pgrep -f '/links/.*[[]mux[]]'; }; "
	says(1, kept+"for i in 1 2 3; do was=$(kept); orrery plan; [ -n \"$was\" ] && [ \"$was\" = \"$(kept)\" ] && "+
		"echo the same && break; done", "nothing to do", "the same", "status 0")
	says(1, kept+"was=$(kept); ORRERY_KEEP=0 orrery plan; kill -0 $was && echo untouched", "nothing to do", "untouched",
		"status 0")
	says(1, "ORRERY_KEEP=soon orrery plan", "ORRERY_KEEP", "a number of seconds", "status 2")
	// Otherwise a command may still talk to the dying helper, and the next run would have none to
	// replace.
	says(1, kept+"kill -9 $(kept); while kept; do sleep 0.1; done; orrery plan", "nothing to do", "status 0")
	// It does not answer.
	says(1, kept+"kept > /tmp/stands; kill -STOP $(cat /tmp/stands); orrery plan; kill -9 $(cat /tmp/stands)",
		"nothing to do", "status 0")
	says(1, "orrery logs all", "a | ==> journal of node a", "b | ==> journal of node b", "status 0")
	says(1, "orrery graph", "host sv1: 1 node. host sv2, ada@10.8.1.2: 1 node.", "status 0")
	says(2, "orrery journal --steps -n 1", "sv1, sv2  root: orrery up", "sv1    node a", "sv2    node b",
		"sv1, sv2  ended after", "status 0")
	says(2, "orrery journal --json", `"hosts": [`, "status 0")
	says(1, "orrery backup /tmp/vault", "2 nodes and 0 volumes", "status 0")
	says(2, "orrery plan", "nothing to do", "status 0") // the hosts have the state

	// A control host is killed, and leaves neither a lock nor an incomplete node.
	says(1, "orrery down b", "status 0")
	says(1, "orrery up & sleep 1; kill -9 $!; wait; true", "status 0")
	says(2, "for i in $(seq 100); do orrery up && break; sleep 0.2; done", "status 0")
	says(2, "orrery exec all -- hostname", "a | a", "b | b", "status 0")

	// A host is frozen, and its connections stay open.
	says(1, "(echo ready; exec orrery exec b -- sh -c 'echo begun; sleep 1000') > /tmp/out 2>&1 & for i in $(seq 600); do grep -q begun /tmp/out && break; sleep 0.1; done",
		"status 0")
	if err := h.At(2).Pause(); err != nil {
		t.Fatal(err)
	}
	says(1, "for i in $(seq 300); do pgrep -f '^orrery ' > /dev/null || break; sleep 0.1; done; cat /tmp/out",
		"host sv2", "0 of 1 nodes")
	says(1, "orrery status", "unknown", "--without sv2", "status 11")
	says(1, "orrery journal -n 1", "sv1  root: orrery up", "host sv2", "--without sv2", "status 1")
	says(1, "orrery journal --without sv2 -n 1", "sv1  root: orrery", "host sv2 is left out", "status 0")
	says(1, "orrery logs a --without sv2", "==> journal of node a", "status 0")
	says(1, "orrery logs b --without sv2", "or is on sv2", "status 0")
	says(1, "orrery up --without sv2", "may be on sv2", "nothing to do", "status 0")
	if err := h.At(2).Resume(); err != nil {
		t.Fatal(err)
	}

	// A host loses power, and afterwards starts its nodes on its own.
	says(1, "for i in $(seq 100); do orrery up && break; sleep 0.2; done", "status 0")
	if err := h.At(2).Kill(); err != nil {
		t.Fatal(err)
	}
	if err := h.At(2).Boot(); err != nil {
		t.Fatal(err)
	}
	says(2, "mv /root/fleet /root/elsewhere; cd /; orrery resume; mv /root/elsewhere /root/fleet", "host sv2: started b",
		"status 0")
	says(1, "orrery plan", "nothing to do", "status 0")
	says(1, "orrery exec all -- hostname", "a | a", "b | b", "status 0")
	says(1, "for i in $(seq 100); do orrery down && break; sleep 0.2; done", "taken down", "status 0")
	for i := 1; i <= 2; i++ {
		out, err := h.At(i).Output("/bin/sh", "-c",
			"ip -br link | grep orb; ls -A /var/lib/orrery/sites/it-fleet/nodes; nft list tables | grep orrery; true")
		if err != nil || out != "" {
			t.Errorf("left on host %d is %q (%v)", i, out, err)
		}
	}
}
