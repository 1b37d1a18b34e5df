package kvm

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// wires adds a network to a running machine. Its guest has the network at once, and after a reboot
// of its own. Then wires removes the network, and what a killed run has left of another.
func (g ground) wires(t *testing.T, n *spec.Node) {
	t.Helper()
	ref := engine.RefOf(n)
	nic := spec.NIC{
		Name: "eth1", Network: "data", Bridge: g.Apart.Bridge, HostIfName: site.VethName(testSite, n.Name, "data"),
		MAC:     site.MAC(testSite, n.Name, "data"),
		Address: netip.MustParsePrefix(dataAddress), MTU: 1400,
	}
	changed := *n
	changed.NICs = append(slices.Clone(n.NICs), nic)
	interfaces := func() string {
		return g.says(t, ref, "sh", "-c",
			"for i in eth0 eth1; do cat /sys/class/net/$i/address /sys/class/net/$i/mtu; ip -4 -br address show $i | awk '{ print $3 }'; done 2>/dev/null")
	}
	less := strings.Join([]string{n.NICs[0].MAC, "1500", n.NICs[0].Address.String()}, "\n")
	more := less + "\n" + strings.Join([]string{nic.MAC, "1400", nic.Address.String()}, "\n")
	must(t, g.Change(t.Context(), &changed))
	if got := interfaces(); got != more {
		t.Errorf("with a network that was plugged, it has %q", got)
	}
	if on := ends.BridgeOf(nic.HostIfName); on != nic.Bridge {
		t.Errorf("its link is on %q", on)
	}
	g.reboot(t, ref)
	if got := interfaces(); got != more {
		t.Errorf("when it has rebooted, it has %q", got)
	}
	must(t, g.Change(t.Context(), n))
	if got := interfaces(); got != less {
		t.Errorf("with a network that was unplugged, it has %q", got)
	}
	if _, err := os.Lstat("/sys/class/net/" + nic.HostIfName); err == nil {
		t.Error("its link is left")
	}

	// A run was killed after it had plugged the card, and the next run does not want it.
	r, err := g.Record(ref)
	must(t, err)
	q, err := g.machine(ref).monitor(t.Context())
	must(t, err)
	w := &rewiring{g.machine(ref), q, r, g.guests}
	must(t, recordInDoubt(w.m.Dir, r, changed.NICs, []spec.NIC{nic}))
	must(t, w.addNIC(t.Context(), nic, false))
	must(t, q.Close())
	nodes, err := g.List(t.Context(), testSite)
	must(t, err)
	if i := slices.IndexFunc(nodes, func(o observe.Node) bool { return o.ID == n.ID }); !slices.Equal(nodes[i].Doubt,
		[]string{"data"}) || len(nodes[i].NICs) != 2 {
		t.Errorf("it is listed as %+v", nodes[i])
	}
	must(t, g.Change(t.Context(), n))
	if got := interfaces(); got != less {
		t.Errorf("with a network that was in doubt, it has %q", got)
	}
}

// dataAddress is on a network that no other test uses.
const dataAddress = "10.99.217.2/24"
