package sitefile

import (
	"testing"

	"orrery/internal/site/spec"
)

// TestFrames: specs contain what nodes may send, in quarantine as well. The addresses of a range
// count up.
func TestFrames(t *testing.T) {
	s := mustLoad(t, `
site.name = "x"
image.debian.suite = "bookworm"
network.lan = { subnet = "10.1.0.0/24", protocols = ["ptp", "0x88a4"] }
[node."cam{1..3}"]
id = 11
net = { lan = "auto" }
ipv6.lan = ["2001:db8::ffff", "fe80::1"]
`)
	maker := spec.NewBuilder(s)
	for i, want := range []string{"2001:db8::ffff,fe80::1", "2001:db8::1:0,fe80::2", "2001:db8::1:1,fe80::3"} {
		n, err := maker.Node(&s.Nodes[i])
		if err != nil {
			t.Fatal(err)
		}
		if got := n.NICs[0].IPv6; got != want {
			t.Errorf("%s sends from %s, not %s", n.Name, got, want)
		}
	}
	lan := maker.Networks()[0]
	if lan.Protocols != "0x88a4,0x88f7" || lan.Quarantined(2).Protocols != lan.Protocols {
		t.Errorf("%+v, and in quarantine %+v", lan, lan.Quarantined(2))
	}
}
