package network

import (
	"net/netip"
	"reflect"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestPorts: a node has a port for each bridge that it is on, even for one to which it was moved,
// and for no other kind of network.
func TestPorts(t *testing.T) {
	n := &spec.Node{Site: "karoo", Name: "web", NICs: []spec.NIC{
		{Network: "cam", Bridge: site.BridgeName("karoo", "cam"), HostIfName: "orv1", MAC: "02:00:00:00:00:01",
			Address: netip.MustParsePrefix("10.8.67.11/24"), IPv6: "2001:db8::1",
			Moving: "10.8.67.5,10.8.67.6"},
		{Network: "wan", Bridge: site.BridgeName("karoo", "wan"), HostIfName: "orv2", Kind: site.Macvlan},
		{Network: "nic", Bridge: site.BridgeName("karoo", "nic"), HostIfName: "orv3", Kind: site.Exclusive},
		{Network: "far", Bridge: "orb-elsewhere", HostIfName: "orv4", MAC: "02:00:00:00:00:04",
			Address: netip.MustParsePrefix("10.8.68.11/24"), Kind: site.Routed},
	}}
	want := []Port{
		{"karoo", "orv1", site.BridgeName("karoo", "cam"), "02:00:00:00:00:01",
			[]netip.Prefix{netip.MustParsePrefix("10.8.67.11/24"), netip.MustParsePrefix("2001:db8::1/128")},
			[]netip.Addr{netip.MustParseAddr("10.8.67.5"), netip.MustParseAddr("10.8.67.6")}},
		{"karoo", "orv4", "orb-elsewhere", "02:00:00:00:00:04", []netip.Prefix{netip.MustParsePrefix("10.8.68.11/24")}, nil},
	}
	if got := Ports(n); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\ninstead of\n%+v", got, want)
	}
}
