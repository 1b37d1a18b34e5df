package network

import (
	"testing"

	"orrery/internal/host/shape"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/traffic"
)

// TestLimitedTap: the link of a virtual machine has limits from the start and while it runs, is guarded
// nevertheless, and leaves nothing.
func TestLimitedTap(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	ofHere(t)
	makeAll(t, closed)
	guarded(t, closed, "orv2", "10.8.69.12/24")
	nic := machineOn(closed, "orv1", "10.8.69.11")
	nic.Traffic = traffic.Limits{Rate: 100_000_000, Burst: 1 << 20}
	must(t, AddAntiSpoof(t.Context(),
		[]Port{{Link: nic.HostIfName, Bridge: nic.Bridge, MAC: nic.MAC, Addresses: nic.Addresses()}}))
	open, err := ends.OpenTap(nic, site.Bridge, 1)
	must(t, err)
	if !asks(t, open[0], "10.8.69.11", "10.8.69.12") {
		t.Error("it reaches nobody")
	}
	if asks(t, open[0], "10.8.69.13", "10.8.69.12") {
		t.Error("it speaks as another")
	}
	n := spec.Node{Site: closed.Site, Name: "machine", NICs: []spec.NIC{nic}}
	inForce := func(recorded traffic.Limits) traffic.Limits {
		seen := []observe.Node{{Node: n, State: observe.Running}}
		seen[0].NICs = []spec.NIC{nic}
		seen[0].NICs[0].Traffic = recorded
		must(t, ObserveTraffic(seen))
		return seen[0].NICs[0].Traffic
	}
	if got := inForce(nic.Traffic); got != nic.Traffic {
		t.Errorf("it has %q", got)
	}
	if got := inForce(traffic.Limits{}); got.Rate != nic.Traffic.Rate {
		t.Errorf("of limits that are not recorded, %q are seen", got)
	}
	for _, l := range []traffic.Limits{{Rate: 50_000_000}, {}} {
		n.NICs[0].Traffic = l
		must(t, SetTraffic(&n))
		if got := inForce(l); got != l {
			t.Errorf("instead of %q it has %q", l, got)
		}
		if !asks(t, open[0], "10.8.69.11", "10.8.69.12") {
			t.Errorf("with %q it reaches nobody", l)
		}
	}
	n.NICs[0].Traffic = nic.Traffic
	must(t, SetTraffic(&n))
	must(t, closeAll(open))
	must(t, SweepTraffic())
	if got := inForce(nic.Traffic); got != nic.Traffic {
		t.Errorf("after a sweep it has %q", got)
	}
	must(t, RemoveLinks([]string{"orv1", "orv2"}))
	if ends.Exists(shape.IFBName("orv1")) {
		t.Error("something is left")
	}
	must(t, SetTraffic(&n)) // of a node that does not run
	removeAll(t, closed)
	nothingLeft(t)
}
