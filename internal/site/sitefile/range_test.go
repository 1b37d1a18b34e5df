package sitefile

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/site"
)

func TestExpand(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "a{1..3}": "a1 a2 a3", "a{08..10}": "a08 a09 a10", "a{8..11}b": "a8b a9b a10b a11b",
		"{00..1}": "00 01", "a{5..5}": "a5", "a{0..2}": "a0 a1 a2",
	} {
		names, p := expand(name, maxNodes)
		if p != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %v %v", name, names, p)
		}
	}
	for _, name := range []string{"a{", "a}", "a{1}", "a{1..}", "a{..1}", "a{1..2}{3..4}", "a{2..1}", "a{0..100000}",
		"a{-1..2}", "{1..99999999999999999999}"} {
		if names, p := expand(name, maxNodes); p == nil || p.Cure == "" {
			t.Errorf("%s: %d names, %v", name, len(names), p)
		}
	}
}

func TestRangeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(0, 2000).Draw(t, "first")
		count := rapid.IntRange(1, 300).Draw(t, "count")
		width := rapid.IntRange(1, 6).Draw(t, "width")
		names, p := expand(fmt.Sprintf("n{%0*d..%0*d}x", width, first, width, first+count-1), maxNodes)
		if p != nil {
			t.Fatal(p)
		}
		if len(names) != count {
			t.Fatalf("%d names, not %d", len(names), count)
		}
		seen := map[string]bool{}
		for i, name := range names {
			if seen[name] {
				t.Fatalf("%s twice", name)
			}
			seen[name] = true
			if want := fmt.Sprintf("n%0*dx", width, first+i); name != want && len(want) == len(name) {
				t.Fatalf("%s, not %s", name, want)
			}
		}
	})
}

// A derived address does not depend on other nodes, and is valid for a node.
func TestAddressProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(16, 30).Draw(t, "bits")
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, rapid.Byte().Draw(t, "b"), rapid.Byte().Draw(t, "c"), 0}),
			bits).Masked()
		n := site.Network{Name: "lan", Subnet: subnet, Gateway: subnet.Addr().Next()}
		room := site.SubnetCapacity(subnet)
		seen := map[netip.Addr]int{}
		for _, id := range rapid.SliceOfNDistinct(rapid.IntRange(2, room), 1, min(50, room-1), rapid.ID).Draw(t, "ids") {
			a := site.DeriveAddress("s", fmt.Sprint("n", id), id, n)
			if other, taken := seen[a]; taken {
				t.Fatalf("ids %d and %d have the address %s", id, other, a)
			}
			seen[a] = id
			if want := site.AddressAfter(subnet.Addr(), id); a != want {
				t.Fatalf("id %d: %s, not %s", id, a, want)
			}
		}
		id := rapid.IntRange(1, 999_999).Draw(t, "id")
		a := site.DeriveAddress("s", "n", id, n)
		if !subnet.Contains(a) || a == subnet.Addr() || a == site.Broadcast(subnet) || a == n.Gateway {
			t.Fatalf("id %d: %s in %s", id, a, subnet)
		}
		if a != site.DeriveAddress("s", "n", id, n) {
			t.Fatal("not the same again")
		}
	})
}

func TestAddingNodesMovesNone(t *testing.T) {
	const head = "site.name = \"x\"\nimage.debian.suite = \"bookworm\"\n" +
		"network.a = { subnet = \"10.0.0.0/16\", gateway = \"10.0.0.1\" }\nnetwork.b.subnet = \"10.1.0.0/20\"\n"
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.IntRange(2, 4000), 2, 20, rapid.ID).Draw(t, "ids")
		first, all := head, head
		for i, id := range ids {
			line := fmt.Sprintf("node.n%d.id = %d\n", id, id)
			all = line + all // also before the others, because the order must not matter
			if i < len(ids)/2 {
				first += line
			}
		}
		before, after := load(t, first), load(t, all)
		for i := range before.Nodes {
			n := &before.Nodes[i]
			same, ok := after.Node(n.Name)
			if !ok || !reflect.DeepEqual(n.NICs, same.NICs) {
				t.Fatalf("%v became %v", n, same)
			}
		}
	})
}

// load does the same as Load for a site.toml that needs no other file.
func load(t *rapid.T, content string) *site.Site {
	l := newLoader(nowhere())
	l.load([]byte(content))
	if err := l.report.list().OrNil(); err != nil {
		t.Fatal(err)
	}
	return l.site
}
