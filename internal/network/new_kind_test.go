package network

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/network/kind"
	"orrery/internal/observe"
	"orrery/internal/plan/clash"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/spec"
)

// vepa is a kind that does not exist in Orrery: macvlans whose frames to one another pass the
// switch at the other end of the wire.
type vepa struct{ kind.Kind }

func (v vepa) NewLink(n spec.Network, attrs netlink.LinkAttrs) netlink.Link {
	link := v.Kind.NewLink(n, attrs).(*netlink.Macvlan)
	link.Mode = netlink.MACVLAN_MODE_VEPA
	return link
}

func (vepa) Attach(nic spec.NIC, inner string, space *os.File) error {
	parent, err := netlink.LinkByName(nic.Parent)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex, attrs.Namespace = inner, parent.Attrs().Index, netlink.NsFd(int(space.Fd()))
	return netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_VEPA})
}

// TestNewKind adds a kind of network: its description to one list, its implementation to another.
// No other code must know it. A site file can name it, rules and plans treat it correctly, and the
// host makes it.
func TestNewKind(t *testing.T) {
	if !sandbox(t) {
		return
	}
	site.NetworkKinds = append(site.NetworkKinds, site.NetworkKind{Name: "vepa", OnInterface: true})
	kind.Kinds["vepa"] = vepa{kind.Of(site.Macvlan)}

	s, err := loaded(t, `interface = "w0"`)
	must(t, err)
	if _, err := loaded(t, ""); err == nil || !strings.Contains(err.Error(), "vepa network lan has no interface") {
		t.Errorf("on no interface: %v", err)
	}
	if _, err := loaded(t, `interface = "w0"`+"\nencrypt = true"); err == nil ||
		!strings.Contains(err.Error(), "cannot be encrypted") {
		t.Errorf("encrypted: %v", err)
	}
	if !s.Networks[0].Wired() {
		t.Error("it is joined by Orrery and not by the wire")
	}

	maker := spec.NewBuilder(s)
	all := maker.Networks()
	veth, n := all[0], all[1]
	node, err := maker.Node(&s.Nodes[0])
	must(t, err)
	nic := node.NICs[0]
	if n.Kind != "vepa" || n.Parent != "w0" || nic.Parent != "w0" || len(Ports(node)) > 0 || node.TakesInterface(nic) {
		t.Errorf("%+v of %+v", nic, n)
	}
	other := n
	other.Site, other.Bridge = "toy", site.BridgeName("toy", n.Name)
	if clash.CheckPlanned(&observe.Host{Name: "sv1", Around: observe.HostNetworking{Networks: []spec.Network{other}}},
		&n, all) == nil {
		t.Error("two sites have networks on one interface")
	}

	makeAll(t, veth, n)
	same(t, []spec.Network{n, veth})
	link, err := netlink.LinkByName(n.Bridge)
	must(t, err)
	if m, ok := link.(*netlink.Macvlan); !ok || m.Mode != netlink.MACVLAN_MODE_VEPA {
		t.Errorf("its link is %+v", link)
	}
	space, err := openNamespace("orrery-vepa", "vepa")
	must(t, err)
	defer space.Close()
	must(t, kind.Attach(nic, node.KindOf(nic), "in0", space))
	must(t, host.InNetNS(space, func() error { _, err := netlink.LinkByName("in0"); return err }))
	must(t, removeNamespace("orrery-vepa", "vepa"))
	removeAll(t, n, veth)
	nothingLeft(t)
}

// loaded reads a site with a network of the kind.
func loaded(t *testing.T, more string) (*site.Site, error) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "site.toml"), []byte(`
[site]
name = "karoo"
[image.debian]
suite = "bookworm"
[vethpair.wire]
ends = ["w0", "w1"]
[network.lan]
subnet  = "10.8.73.0/24"
gateway = "10.8.73.1"
kind    = "vepa"
`+more+`
[node.one]
id = 1
`), 0o644))
	return sitefile.Load(dir)
}
