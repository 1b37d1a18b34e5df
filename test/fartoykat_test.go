package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/test/hosts"
	"orrery/test/need"
)

// TestFarToykat: a telescope is spread over four hosts. Every node reaches every other, and the
// receptors' samples arrive in the database. Between the hosts there is only VXLAN traffic. One
// host is the control host, and another one after the first has lost power. If two hosts control
// the site at once, each waits or is refused. When the first host is back, any control host brings
// the site to its declared state, and destroys it.
func TestFarToykat(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	const count, dir = 4, "/root/toykat"
	s := newExample(t, "toykat", "it-fartoykat", "10.8.67.", "10.99.247.", "10.8.68.", "10.99.248.")
	s.edit("site.toml", "[group.receptors]", "[group.receptors]\nspread = \"host\"")
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: count, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	text, err := os.ReadFile(filepath.Join(s.dir, "site.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= count; at++ {
		var b strings.Builder
		for i := 1; i <= count; i++ {
			address := hosts.AddressOf(i)
			if i == at {
				address = "local"
			}
			fmt.Fprintf(&b, "[host.%s]\naddress = %q\nunderlay = %q\n", hosts.NameOf(i), address, hosts.AddressOf(i))
		}
		s.write("site.toml", string(text)+b.String())
		s.carry(h.At(at), dir)
	}
	says := func(on int, script string, words ...string) string {
		t.Helper()
		return s.ask(h.At(on), dir, script, words...)
	}
	const again = "for i in $(seq 100); do %s && break; sleep 0.2; done"

	says(1, "orrery up", "receptor4 ", "status 0")
	for i := 1; i <= count; i++ {
		says(1, fmt.Sprintf("orrery status | grep -c 'receptor.* sv%d .*running'", i), "1\n", "status 0") // spread
	}
	if _, err := h.At(2).Output("/bin/sh", "-c", `nft -f - <<'END'
table netdev watch {
	counter inside { }
	counter bare { }
	chain c {
		type filter hook ingress device "eth0" priority 0;
		udp dport 4789 counter name inside return
		ip saddr 10.99.247.0/24 counter name bare
		ip saddr 10.99.248.0/24 counter name bare
		arp saddr ip 10.99.247.0/24 counter name bare
		arp saddr ip 10.99.248.0/24 counter name bare
	}
}
END`); err != nil {
		t.Fatal(err)
	}
	const reach = `orrery exec %s -- sh -c 'for ip in 10.99.247.101 10.99.247.102 10.99.247.201 10.99.247.202 10.99.247.203 10.99.247.204; do ping -qc1 -W5 $ip >/dev/null || echo lacks $ip; done; echo reaches'`
	if out := says(1, fmt.Sprintf(reach, "all"), "status 0"); strings.Count(out, "| reaches") != 6 ||
		strings.Contains(out, "lacks") {
		t.Errorf("not every node reaches every other:\n%s", out)
	}
	says(1, `for i in $(seq 60); do orrery exec db -- su postgres -c "psql -qAt -d toykat -c \"SELECT count(DISTINCT receptor) FROM samples WHERE time > now() - interval '5 s'\"" | grep -q '| 4' && break; sleep 0.5; done`,
		"status 0")
	if out, err := h.At(2).Output("/bin/sh", "-c",
		"nft list counter netdev watch inside; nft list counter netdev watch bare"); err != nil ||
		strings.Count(out, "packets 0 ") != 1 || strings.Index(out, "packets 0 ") < strings.Index(out, "counter bare") {
		t.Errorf("by the switch came %s (%v)", out, err)
	}

	// Two hosts run commands at once. The second waits or is refused, and the last up completes the
	// rest.
	both := `orrery %s > /tmp/out 2>&1; s=$?; case $s in 0|5) ;; *) cat /tmp/out; echo "ended with $s";; esac; true`
	ended := make(chan string, 2)
	for on, verb := range map[int]string{3: "restart group=receptors", 4: "up"} {
		go func() {
			out, err := h.At(on).Output("/bin/sh", "-c", "cd "+dir+"; "+fmt.Sprintf(both, verb))
			ended <- fmt.Sprint(out, err)
		}()
	}
	for range 2 {
		if out := <-ended; out != "<nil>" {
			t.Errorf("of two that steer at once, one says %s", out)
		}
	}
	says(4, fmt.Sprintf(again, "orrery up"), "status 0")
	says(2, "orrery plan", "nothing to do", "status 0")

	// The control host loses power.
	gone := says(2, "orrery status >/tmp/status && sed -n 's/^\\([a-z0-9]*\\) .* sv1 .*/\\1/p' /tmp/status", "status 0")
	if err := h.At(1).Kill(); err != nil {
		t.Fatal(err)
	}
	says(3, "orrery up", "host sv1", "--without sv1", "status 1")
	says(3, "orrery up --without sv1", "status 0")
	rest := ""
	for _, n := range []string{"portal", "db", "receptor1", "receptor2", "receptor3", "receptor4"} {
		if !strings.Contains(gone, n+"\n") {
			rest += " " + n
		}
	}
	if out := says(3, "orrery exec --without sv1"+rest+" -- true", "status 0"); strings.Count(rest, " ") == 6 {
		t.Errorf("nothing was on the host that is gone: %s", out)
	}

	if err := h.At(1).Boot(); err != nil {
		t.Fatal(err)
	}
	says(3, fmt.Sprintf(again, "orrery up"), "running", "status 0")
	says(1, "orrery plan", "nothing to do", "status 0")
	if out := says(1, fmt.Sprintf(reach, "all"), "status 0"); strings.Count(out, "| reaches") != 6 ||
		strings.Contains(out, "lacks") {
		t.Errorf("after all, not every node reaches every other:\n%s", out)
	}
	says(2, fmt.Sprintf(again, "orrery down --volumes --yes-volumes it-fartoykat"), "status 0")
	for i := 1; i <= count; i++ {
		if out, err := h.At(i).Output("/bin/sh", "-c",
			"ip -br link | grep -e orb -e orx -e orv; ls -A /var/lib/orrery/sites/it-fartoykat/nodes; nft list tables | grep orrery; true"); err != nil || out != "" {
			t.Errorf("left on host %d is %q (%v)", i, out, err)
		}
	}
}
