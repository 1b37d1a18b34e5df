package graph

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/site"
)

var update = flag.Bool("update", false, "write the pictures anew")

// fleet returns a site with some nodes, hosts and networks. Every third node is on all networks.
func fleet(nodes, hosts, networks int) *site.Site {
	s := &site.Site{Name: "fleet"}
	for i := range hosts {
		s.Hosts = append(s.Hosts, site.Host{Name: fmt.Sprintf("sv%d", i+1), Address: fmt.Sprintf("root@10.0.0.%d", i+1)})
	}
	for i := range networks {
		s.Networks = append(s.Networks, site.Network{Name: fmt.Sprintf("net%d", i),
			Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(i), 0}), 24)})
	}
	for i := range nodes {
		n := site.Node{Name: fmt.Sprintf("node%d", i+1), ID: 101 + i, Roles: []string{fmt.Sprintf("role%d", i%5)}}
		if hosts > 0 {
			n.Host = s.Hosts[i%hosts].Name
		}
		for k := range networks {
			if k == 0 || i%3 == 0 {
				n.NICs = append(n.NICs, site.NIC{Network: s.Networks[k].Name,
					Address: netip.AddrFrom4([4]byte{10, 9, byte(k), byte(1 + i%250)})})
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

func picture(s *site.Site) Picture {
	p := Picture{Site: s}
	for i := range s.Nodes {
		p.Nodes = append(p.Nodes, &s.Nodes[i])
	}
	return p
}

// all contains every state of a node.
var all = []NodeState{
	{Health: Good, Word: "healthy"}, {Health: Warning, Word: "drifted", Detail: "file /etc/x is gone"},
	{Health: Bad, Word: "unhealthy", Detail: "no answer"},
	{Health: Off, Word: "stopped"}, {Health: Absent, Word: "absent"},
	{Health: Good, Word: "running", Beside: []string{"release 701 in quarantine, running"}},
}

// TestGolden compares pictures with those that were checked in a browser. Flag -update writes new
// ones, which must be checked again.
func TestGolden(t *testing.T) {
	three := picture(fleet(3, 0, 1))
	three.Host = "local"
	seen := picture(fleet(12, 2, 2))
	seen.Seen = map[string]NodeState{}
	for i, n := range seen.Nodes {
		seen.Seen[n.Name] = all[i%len(all)]
	}
	for name, p := range map[string]Picture{"three": three, "seen": seen, "many": picture(fleet(64, 1, 3)),
		"unplaced": picture(fleet(2, 0, 0)), "empty": picture(&site.Site{Name: "empty"})} {
		t.Run(name, func(t *testing.T) {
			svg := Draw(p)
			path := filepath.Join("testdata", name+".svg")
			if *update {
				if err := os.WriteFile(path, svg, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(golden) != string(svg) {
				t.Errorf("%s is no longer what is drawn; go test -update writes it anew, then look at it", path)
			}
			wellFormed(t, svg)
		})
	}
}

// wellFormed checks that a picture is XML with only the elements and attributes that this package
// draws.
func wellFormed(t interface{ Fatalf(string, ...any) }, svg []byte) {
	known := map[string]bool{}
	for _, name := range strings.Fields("svg title desc style rect text tspan path circle g") {
		known[name] = true
	}
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if !known[e.Name.Local] {
				t.Fatalf("there is a strange element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
					t.Fatalf("%s has an attribute %s", e.Name.Local, a.Name.Local)
				}
			}
		}
	}
}

// TestDisjoint: on any site, no card overlaps another or leaves its host's box, and no line crosses
// a card.
func TestDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := picture(fleet(rapid.IntRange(0, 80).Draw(t, "nodes"), rapid.IntRange(0, 4).Draw(t, "hosts"),
			rapid.IntRange(0, 9).Draw(t, "networks")))
		l := p.layout()
		if len(l.cards) != len(p.Nodes) {
			t.Fatalf("%d cards for %d nodes", len(l.cards), len(p.Nodes))
		}
		for i, c := range l.cards {
			for _, other := range l.cards[:i] {
				if c.x < other.right() && other.x < c.right() && c.y < other.bottom() && other.y < c.bottom() {
					t.Fatalf("%s lies on %s", c.node.Name, other.node.Name)
				}
			}
			inside := false
			for _, h := range l.hosts {
				inside = inside || c.x > h.x && c.right() < h.right() && c.y > h.y+hostHead-1 && c.bottom() < h.bottom()
			}
			if !inside {
				t.Fatalf("%s is in no host", c.node.Name)
			}
			for _, n := range l.networks {
				for _, b := range n.branches {
					if b.y >= c.y && b.y <= c.bottom() {
						t.Fatalf("network %s runs over %s", n.network.Name, c.node.Name)
					}
				}
				if n.x > c.x {
					t.Fatalf("the trunk of network %s runs over %s", n.network.Name, c.node.Name)
				}
			}
		}
		branches := map[[2]int]string{}
		for _, n := range l.networks {
			for _, b := range n.branches {
				for _, s := range b.stubs {
					at := [2]int{s.x, s.top}
					if other := branches[at]; other != "" {
						t.Fatalf("networks %s and %s are joined at one place", other, n.network.Name)
					}
					branches[at] = n.network.Name
				}
			}
		}
		for _, h := range l.hosts {
			if h.right() > l.width || h.bottom() > l.legend {
				t.Fatalf("%s is not wholly in the picture", h.title)
			}
		}
	})
}

var hostile = []string{
	`</title><script>alert(1)</script>`, `"><image href="http://x/"/>`, "a\x1b[31mred\x00\x07", "\u202eesrever",
	`&amp;]]>`, "\xff\xfe", "line\nline\ttab",
	strings.Repeat("W", 5000), strings.Repeat("字", 300), "\ufffe\U000e0041", `onload='x'`,
}

// TestHostile: text from a node cannot become markup, leave its card, or be invisible.
func TestHostile(t *testing.T) {
	for _, text := range hostile {
		drawHostile(t, text)
	}
}

func FuzzHostile(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { drawHostile(t, text) })
}

func drawHostile(t *testing.T, text string) {
	s := fleet(1, 1, 1)
	s.Name, s.Hosts[0].Name, s.Networks[0].Name = text, text, text
	n := &s.Nodes[0]
	n.Name, n.Roles, n.Host, n.NICs[0].Network = text, []string{text, text}, text, text
	p := picture(s)
	wellFormed(t, Draw(p))
	p.Seen = map[string]NodeState{text: {Health: Bad, Word: text, Detail: text, Beside: []string{text}}}
	svg := Draw(p)
	wellFormed(t, svg)
	for _, r := range string(svg) {
		if r < ' ' && r != '\n' && r != '\t' || r == '\u202e' {
			t.Fatalf("%q: there is %U in the picture", text, r)
		}
	}
	for line := range strings.Lines(string(svg)) {
		if _, shown, ok := strings.Cut(line, `class="name" x="16" y="20">`); ok && len([]rune(shown)) > 60 {
			t.Errorf("%q: the name is not cut: %s", text, shown)
		}
	}
}

func (b box) right() int  { return b.x + b.w }
func (b box) bottom() int { return b.y + b.h }
