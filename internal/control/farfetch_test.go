package control_test

import (
	"fmt"
	"strings"
	"testing"

	"orrery/internal/observe"
)

const threeHosts = `
[site]
name = "toykat"

[host.sv1]
address = "local"
[host.sv2]
address = "10.8.1.2"
[host.sv3]
address = "10.8.1.3"

[network.one]
subnet  = "10.99.1.0/24"
gateway = "10.99.1.1"
[network.two]
subnet  = "10.99.2.0/24"
gateway = "10.99.2.1"
[network.three]
subnet  = "10.99.3.0/24"
gateway = "10.99.3.1"

[image.debian]
suite = "bookworm"

[node.first]
id    = 11
roles = ["web"]
host  = "sv1"
net.one = "auto"
`

const onTheOthers = `
[node.second]
id    = 12
roles = ["web"]
host  = "sv2"
net.two = "auto"
[node.third]
id    = 13
roles = ["web"]
host  = "sv3"
net.three = "auto"
`

// fetching returns a site on three hosts. The first host has layers that the others need now.
func fetching(t *testing.T) (d *desk, second, third *machine, m *mishaps) {
	t.Helper()
	d, second, third, m = newDesk(t), newMachine(t), newMachine(t), &mishaps{}
	d.machine.others = map[string]*machine{"sv2": second, "sv3": third}
	for i, one := range []*machine{d.machine, second, third} {
		one.mishaps, one.name = m, fmt.Sprintf("sv%d", i+1)
		one.of("toykat").Addresses = []observe.Address{{Prefix: fmt.Sprintf("10.8.1.%d/24", i+1), Link: "eth0", MTU: 1500}}
	}
	d.write("site.toml", threeHosts)
	d.up()
	d.write("site.toml", threeHosts+onTheOthers)
	return d, second, third, m
}

const threeUp = "first none running healthy, second none running healthy, third none running healthy"

// TestFetch: hosts fetch layers from hosts that have them, including a layer on top of a fetched
// one. A layer that cannot be fetched is built, and that is reported.
func TestFetch(t *testing.T) {
	d, second, third, _ := fetching(t)
	d.up()
	d.wantNodes(threeUp)
	for name, one := range map[string]*machine{"sv2": second, "sv3": third} {
		calls := strings.Join(one.fault.Calls(), "\n")
		if !strings.Contains(calls, "fetch ") || strings.Contains(calls, "layer ") ||
			strings.Contains(d.watch.text(), "built") {
			t.Errorf("host %s did\n%s\ntold: %s", name, calls, d.watch.text())
		}
	}

	d, second, third, _ = fetching(t)
	second.fault.Fail("fetch", "", -1, nil)
	d.up()
	d.wantNodes(threeUp)
	for _, want := range []string{"host sv2 built layer ", ", because it could not be fetched: ",
		"injected failure"} {
		if !strings.Contains(d.watch.text(), want) {
			t.Errorf("%q was not told: %s", want, d.watch.text())
		}
	}
	if calls := strings.Join(third.fault.Calls(), "\n"); !strings.Contains(calls, "fetch ") ||
		strings.Contains(d.watch.text(), "host sv3 built") {
		t.Errorf("host sv3 waited for one that fetches nothing: %s", calls)
	}

	d, _, _, m := fetching(t)
	m.order("sv1 Transfers.Send", 1)
	d.up()
	d.wantNodes(threeUp)
	if !m.happened() || !strings.Contains(d.watch.text(), "receiving from other hosts: ") {
		t.Errorf("that a host gave nothing was not told: %s", d.watch.text())
	}
}
