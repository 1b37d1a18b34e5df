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

// TestFarTwin: a twin of a site on two hosts is on both, with the addresses of the original. Its
// nodes reach one another across the hosts, and neither site reaches the other. The twin is listed
// and destroyed from either host. Each host destroys its own part of a twin whose time is over.
func TestFarTwin(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-fartw", "10.77.1.", "10.99.242.")
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	if err := os.MkdirAll(filepath.Join(s.dir, "roles/keeper"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "roles/keeper/role.toml"),
		[]byte("[[volume]]\nname = \"data\"\npath = \"/data\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, local := range map[int]string{1: `"local"`, 2: fmt.Sprintf("%q", hosts.AddressOf(2))} {
		text := spanSite("it-fartw", "gateway = \"10.99.243.1\"\n", []string{"a", "b"}, 11)
		text = strings.ReplaceAll(text, "memory =", "roles = [\"keeper\"]\nmemory =") + "[volume.data]\n"
		if i == 2 {
			text = strings.NewReplacer(`"local"`, fmt.Sprintf("%q", hosts.AddressOf(1)), local, `"local"`).Replace(text)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "site.toml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s.carry(h.At(i), "/root/fleet")
	}
	says := func(on int, script string, words ...string) string {
		t.Helper()
		return s.ask(h.At(on), "/root/fleet", script, words...)
	}
	says(1, "orrery up", "status 0")
	says(1, "orrery exec all -- sh -c 'hostname >/data/whose'", "status 0")
	says(1, "orrery twin create . dev --volumes snapshot --nat --expires 1h", "a ", "sv2", "running", "status 0")
	says(2, "orrery twin ls", "sv1+sv2", "2 of 2 run", "status 0")
	says(2, "orrery --twin dev exec all -- cat /data/whose", "a | a", "b | b", "status 0")
	says(2, "orrery --twin dev plan", "nothing to do", "status 0")
	for _, pair := range [][2]string{{"orrery --twin dev", "orrery"}, {"orrery", "orrery --twin dev"}} {
		counted := pair[1] + " exec b -- sh -c 'grep ^Icmp: /proc/net/snmp | cut -d\" \" -f10'" // echo requests
		before := says(1, counted, "status 0")
		says(1, "for i in $(seq 50); do "+pair[0]+" exec a -- ping -c1 -W1 10.99.243.12 && echo reached && break; done",
			"reached")
		says(1, pair[0]+" exec all -- ping -c1 -W1 10.99.243.1", "status 0") // its own router, or the host
		if after := says(1, counted, "status 0"); after != before {
			t.Errorf("what %q sent has come to %q:\n%s\n%s", pair[0], pair[1], before, after)
		}
	}
	// Each host is the gateway of its nodes.
	says(1, "orrery --twin dev exec a -- ping -c1 -W5 "+hosts.AddressOf(2)+
		" && orrery --twin dev exec b -- ping -c1 -W5 "+hosts.AddressOf(1), "status 0")

	// No process waits on the second host for the end of the twin's time. The next control host
	// that connects makes it destroy its part.
	says(2, "/bin/kill -9 -- -$(grep -o '\"pid\":[0-9]*' /run/orrery/later/expiry-it-fartw.dev | cut -d: -f2); cd /var/lib/orrery/sites/it-fartw.dev; sed -i 's/\"\\(expires\\|at\\)\": *\"20/\"\\1\": \"19/' twin.json unattended/expiry.json",
		"status 0")
	says(1, "orrery --twin dev status", "different records", "status 6")
	says(2, "for i in $(seq 200); do [ -e /var/lib/orrery/sites/it-fartw.dev ] || break; sleep 0.1; done; orrery twin ls; ip -br link | grep -c orb",
		"sv1", "1 of 1 run", "\n1\n")
	says(2, "orrery twin destroy dev", "Twin dev of it-fartw is gone", "status 0")
	says(1, "orrery twin ls | grep -c dev; ip -br link | grep -c orb; ip netns | grep -c .", "0\n1\n0\n")
	says(1, "orrery exec all -- hostname", "a | a", "b | b", "status 0")

	// A program on the control host fills the volumes, and each volume is sent to the host of its
	// node.
	says(1, `printf '#!/bin/sh -e\necho "$1 of $2" >"$3/whose"\nchown 33:33 "$3/whose"\n' >fill.sh && chmod 755 fill.sh`,
		"status 0")
	says(1, "mkdir /root/work && TMPDIR=/root/work orrery twin create . made --volumes ./fill.sh", "sv2", "running",
		"status 0")
	says(1, "orrery --twin made exec all -- cat /data/whose", "a | data of a", "b | data of b", "status 0")
	says(2, "orrery --twin made exec all -- stat -c %U /data/whose; orrery --twin made plan", "a | www-data",
		"b | www-data", "nothing to do", "status 0")
	says(1, "ls -A /root/work | grep -c .; ls /var/lib/orrery/sites/it-fartw.made/volumes/data", "0\na\n")
	says(2, "orrery twin destroy made --hard && ls /var/lib/orrery/sites", "node a: kill: ok",
		"Twin made of it-fartw is gone", "status 0")
	says(1, "orrery down", "status 0")
}
