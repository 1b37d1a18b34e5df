package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"orrery/test/hosts"
	"orrery/test/need"
)

const travelSite = `
site.name = "it-travel"
network.lan.subnet = "10.99.217.0/24"
image.debian.suite = "bookworm"
host.sv1.address = "local"
host.sv2.address = "10.8.1.2"
host.sv3.address = "10.8.1.3"
node.a = { id = 11, host = "sv1", memory = "256MiB", roles = ["cargo"] }
node.b = { id = 12, host = "sv2", memory = "256MiB", roles = ["cargo"] }
node.c = { id = 13, host = "sv3", memory = "256MiB", roles = ["cargo"] }
`

// cargoRole makes a layer of 24 MB, the same each time.
const cargoRole = `
[[step]]
name = "fill"
when = "build"
script = """
mkdir /opt/cargo
for i in $(seq 24); do yes "file $i" | head -c 1000000 >/opt/cargo/$i; done
"""
`

// TestLayersTravel: a layer is built once, and other hosts fetch it from hosts that have it. If the
// link fails half way, the rest is fetched later. A host that sends wrong data is named. If no host
// sends the correct layer, it is built. Hosts that do not reach one another get the layer through
// the control host.
func TestLayersTravel(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-travelbase", "10.77.1.", "10.99.217.")
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: 3, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	role := filepath.Join(s.dir, "roles", "cargo")
	if err := os.MkdirAll(role, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(s.dir, "site.toml"): travelSite,
		filepath.Join(role, "role.toml"): cargoRole} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.carry(h.At(1), "/root/site")
	says := func(script string, words ...string) {
		t.Helper()
		s.ask(h.At(1), "/root/site", script, words...)
	}
	on := func(host int, script string) string {
		t.Helper()
		out, err := h.At(host).Output("/bin/sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	layer := `$(grep -l '"title": "debian + cargo"' /var/lib/orrery/store/*/layer.json | xargs -r -n1 dirname)`
	received := func() int {
		t.Helper()
		n, err := strconv.Atoi(on(2, "cat /sys/class/net/eth0/statistics/rx_bytes"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	says("orrery plan -v", "build", "fetch", "built on sv1", "status 10")
	says("orrery up a", "running", "status 0")
	// The link between the hosts is cut after 8 MB, except for SSH, and then the helper is killed,
	// so that the test need not wait until the stall is noticed.
	on(1, "nft add table inet wall; nft 'add chain inet wall out { type filter hook output priority 0; }'; nft add rule inet wall out ip daddr 10.8.1.2 tcp dport != 22 quota over 8 mbytes drop")
	cut := make(chan error, 1)
	go func() {
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			out, _ := h.At(2).Output("/bin/sh", "-c", "du -sk /var/lib/orrery/store/.incoming | cut -f1")
			if n, _ := strconv.Atoi(out); n > 4000 {
				break
			}
			if time.Since(began) > time.Minute {
				cut <- fmt.Errorf("nothing comes: %q", out)
				return
			}
		}
		_, err := h.At(2).Output("pkill", "-9", "-f", "host-helper")
		cut <- err
	}()
	says("orrery up b", "sv2", "the connection", "status 8")
	if err := <-cut; err != nil {
		t.Fatal(err)
	}
	on(1, "nft delete table inet wall")
	// The hosts can only reach one another by SSH from now on.
	on(2, "nft add table inet wall; nft 'add chain inet wall out { type filter hook output priority 0; }'; nft add rule inet wall out ip daddr 10.8.1.1 tcp sport != 22 reject")
	before := received()
	says("for i in $(seq 100); do orrery up b && break; sleep 0.2; done", "fetch: ok", "running", "status 0")
	if n := received() - before; n > 22_000_000 {
		t.Errorf("%d bytes came, although some had come before", n)
	}
	on(2, "orrery image verify "+`$(basename `+layer+`)`)
	says("orrery journal --steps -n 1", "layer debian + cargo: fetch: not in the store", "available on sv1", "status 0")

	// Only the host that sends wrong data has the layer now.
	says("orrery down a", "status 0")
	on(1, "rm -r "+layer)
	on(2, "for f in "+layer+"/tree/opt/cargo/*; do printf x | dd of=$f conv=notrunc status=none; done; nft delete table inet wall")
	says("orrery up c", "host sv2 is not used any more: it is not what was requested: its /opt/cargo/",
		"host sv3 built layer debian + cargo, because it could not be fetched", "running", "status 0")
	on(3, "orrery image verify "+`$(basename `+layer+`)`)
	says("orrery down", "status 0")
}
