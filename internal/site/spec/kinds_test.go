package spec

import (
	"encoding/json"
	"strings"
	"testing"

	"orrery/internal/site"
)

// kinds returns the observatory with its second network changed to a kind.
func kinds(kind string) *site.Site {
	s := observatory()
	cam := &s.Networks[1]
	cam.Kind = kind
	s.VethPairs = []site.VethPair{{Name: "wire", Ends: [2]string{"w0", "w1"}}}
	switch kind {
	case site.Macvlan:
		cam.Interface = "w0"
	case site.Exclusive:
		cam.NAT = false
		s.Nodes[0].NICs[1].Interface, s.Nodes[1].NICs[0].Interface = "w0", "w1"
	}
	return s
}

func TestKinds(t *testing.T) {
	for _, kind := range []string{site.Routed, site.Macvlan, site.Exclusive} {
		s := kinds(kind)
		networks := NewBuilder(s).Networks()
		if veth := networks[0]; veth.Kind != VethPair || !veth.HasEnd("w0") || !veth.HasEnd("w1") || veth.HasEnd("") ||
			veth.HasEnd("w2") || veth.MTU != 1500 {
			t.Errorf("%+v", veth)
		}
		on := networks[2]
		if on.Kind != kind || (on.Gateway == "") != (kind == site.Exclusive) ||
			(on.Parent == "w0") != (kind == site.Macvlan) || on.Bridge != site.BridgeName("karoo", "cam") {
			t.Errorf("%s: %+v", kind, on)
		}
		n := nodeOf(t, s, 1)
		nic := n.NICs[0]
		if n.KindOf(nic) != kind || nic.Gateway != "10.1.0.1" || (nic.Via != "") != (kind == site.Routed) ||
			site.IsRoutedLink(nic.HostIfName) != (kind == site.Routed) {
			t.Errorf("%s: %+v", kind, nic)
		}
		if n.TakesInterface(nic) != (kind == site.Exclusive) || n.TakesInterface(nic) && nic.Parent != "w1" ||
			kind == site.Macvlan &&
				nic.Parent != "w0" {
			t.Errorf("%s: %+v", kind, nic)
		}
		if kind == site.Routed && !strings.HasPrefix(nic.HostIfName, site.RoutedPrefix("karoo", "cam")) {
			t.Errorf("%+v", nic)
		}
		if NamesDigest(s) != NamesDigest(observatory()) {
			t.Errorf("%s: other nodes are told of it", kind)
		}

		staged := *s
		staged.Stage = 700
		for i := range staged.Nodes {
			staged.Nodes[i].Release = 700
		}
		apart := nodeOf(t, &staged, 1)
		if got := apart.KindOf(apart.NICs[0]); got != site.Bridge || apart.TakesInterface(apart.NICs[0]) ||
			apart.NICs[0].HostIfName == nic.HostIfName {
			t.Errorf("%s: in quarantine it is %s: %+v", kind, got, apart.NICs[0])
		}
		for _, n := range NewBuilder(&staged).Networks() {
			if n.Kind != "" || n.Parent != "" {
				t.Errorf("%s: in quarantine there is %+v", kind, n)
			}
		}
		apart.NICs[0].Bridge = nic.Bridge // as stand.AsLive does
		if got := apart.KindOf(apart.NICs[0]); got != kind {
			t.Errorf("%s: live it is %s", kind, got)
		}
	}
}

// TestBridgesAreRecordedAsBefore: the records of bridges have not changed since the other kinds
// exist.
func TestBridgesAreRecordedAsBefore(t *testing.T) {
	s := observatory()
	text, err := json.Marshal([]any{NewBuilder(s).Networks(), nodeOf(t, s, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"kind", "parent", "ends", "via"} {
		if strings.Contains(string(text), `"`+word+`"`) {
			t.Errorf("%q is in %s", word, text)
		}
	}
}

func TestLinked(t *testing.T) {
	n := nodeOf(t, kinds(site.Routed), 0)
	free := WithoutBridges(n)
	if free[0].Bridge != "" || free[1].Bridge == "" || n.NICs[0].Bridge == "" {
		t.Errorf("%+v of %+v", free, n.NICs)
	}
}
