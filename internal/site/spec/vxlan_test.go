package spec

import (
	"net/netip"
	"reflect"
	"testing"

	"orrery/internal/site"
)

// TestPeers: encoded peers can be decoded, and their order does not matter.
func TestPeers(t *testing.T) {
	one, two := Peer{Address: netip.MustParseAddr("10.8.1.2"), MACs: []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}},
		Peer{Address: netip.MustParseAddr("10.8.1.10"), MACs: []string{}}
	text := FormatPeers([]Peer{two, {Address: one.Address, MACs: []string{one.MACs[1], one.MACs[0]}}})
	if text != "10.8.1.2 02:00:00:00:00:01 02:00:00:00:00:02;10.8.1.10" || text != FormatPeers([]Peer{one, two}) {
		t.Error(text)
	}
	v := VXLAN{Peers: text}
	if got, err := v.ParsePeers(); err != nil || !reflect.DeepEqual(got, []Peer{one, two}) {
		t.Errorf("%v %v", got, err)
	}
	if got := v.Hosts(); got != "10.8.1.2 10.8.1.10" {
		t.Error(got)
	}
	one.Endpoint, one.Key = netip.MustParseAddr("192.0.2.1"), "KEY="
	v.Peers = FormatPeers([]Peer{one})
	if got, err := v.ParsePeers(); err != nil || !reflect.DeepEqual(got, []Peer{one}) {
		t.Errorf("encrypted, %s is read as %v %v", v.Peers, got, err)
	}
	for _, wrong := range []string{"10.8.1.2|KEY=", "10.8.1.2|x|KEY=", "10.8.1.2|10.8.1.3|KEY=|more"} {
		if _, err := (VXLAN{Peers: wrong}).ParsePeers(); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
	if none, err := (VXLAN{}).ParsePeers(); none != nil || err != nil {
		t.Error(none, err)
	}
	for _, ill := range []string{"sv2", "10.8.1.2;", ";", "10.8.1.2\n02:00:00:00:00:01"} {
		if got, err := (VXLAN{Peers: ill}).ParsePeers(); err == nil {
			t.Errorf("%q reads %v", ill, got)
		}
	}
}

// TestVNI: networks of sites, twins and quarantines have different, stable numbers.
func TestVNI(t *testing.T) {
	seen := map[int]string{}
	for _, key := range []string{"toykat", "toykat.it", "toykat.700", "karoo"} {
		for _, network := range []string{"lan", "data"} {
			n := site.VNI(key, network)
			if n < 1 || n >= 1<<24 || n != site.VNI(key, network) || seen[n] != "" {
				t.Errorf("%s %s has %d, as %q", key, network, n, seen[n])
			}
			seen[n] = key
		}
	}
	if n := site.VNI("toykat", "lan"); n != 8257896 {
		t.Errorf("hosts that are up have another number than %d", n)
	}
}
