package wireguard

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func encrypted(t *testing.T) (spec.Network, string) {
	t.Helper()
	private, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	public, err := PublicKey(private)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddr("10.8.1.2")
	other, _ := GenerateKey()
	theirs, _ := PublicKey(other)
	n := spec.Network{Site: "toykat", Name: "lan", MTU: 1350,
		VXLAN: spec.VXLAN{ID: 4711, Local: site.InnerAddress("toykat", "lan", netip.MustParseAddr("10.8.1.1")).String(),
			Key: public}}
	n.VXLAN.Peers = spec.FormatPeers([]spec.Peer{{Address: site.InnerAddress("toykat", "lan", at), Endpoint: at,
		Key:  theirs,
		MACs: []string{"02:00:00:00:00:02"}}})
	return n, private
}

// TestPeers: a peer may use only its own address, and a peer without a key is refused.
func TestPeers(t *testing.T) {
	n, _ := encrypted(t)
	peers, err := peersOf(n)
	if err != nil || len(peers) != 1 {
		t.Fatalf("%v %v", peers, err)
	}
	p := peers[0]
	if ones, bits := p.AllowedIPs[0].Mask.Size(); len(p.AllowedIPs) != 1 || ones != 128 || bits != 128 ||
		p.Endpoint.String() != "10.8.1.2:24711" {
		t.Errorf("the peer is %+v", p)
	}
	peer := wgtypes.Peer{PublicKey: p.PublicKey, Endpoint: &net.UDPAddr{IP: net.ParseIP("10.8.1.2").To4(), Port: 24711},
		AllowedIPs: p.AllowedIPs}
	if !samePeer(peer, p) {
		t.Error("a peer is not known again")
	}
	peer.Endpoint = nil
	if samePeer(peer, p) {
		t.Error("a peer without an address is taken for one")
	}
	n.VXLAN.Peers = "fd00::2 02:00:00:00:00:02"
	if _, err := peersOf(n); !problem.Is(err, problem.Unable) {
		t.Errorf("of a peer without a key: %v", err)
	}
	n.VXLAN.Peers = "fd00::2|10.8.1.2|AAAA 02:00:00:00:00:02"
	if _, err := peersOf(n); !problem.Is(err, problem.Unable) {
		t.Errorf("of a peer with half a key: %v", err)
	}
}

// TestOtherKey: a key that differs from the plan's, or is invalid, is not used, and a device that
// is not Orrery's is not taken.
func TestOtherKey(t *testing.T) {
	n, private := encrypted(t)
	other, _ := GenerateKey()
	if err := SetPrivateKey(n, other); err == nil || !strings.Contains(err.Error(), "the key of this host has changed") {
		t.Errorf("of another key: %v", err)
	}
	if err := SetPrivateKey(n, "x"+private[1:20]); err == nil || strings.Contains(err.Error(), private[1:20]) {
		t.Errorf("of half a key: %v", err)
	}
	if public, err := PublicKey(private); err != nil || public == private {
		t.Errorf("the public key is %s (%v)", public, err)
	}
	theirs := &netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: Name(n), Alias: "theirs"}}
	if isOurs(theirs, n) || len(Name(n)) > 15 {
		t.Error("a device of others is taken for Orrery's")
	}
	if key, _, whole := Read(n, map[string]netlink.Link{Name(n): theirs}); key != "" || !whole {
		t.Error("and is read")
	}
}
