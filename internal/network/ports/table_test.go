package ports

import (
	"fmt"
	"testing"

	"github.com/google/nftables"

	"orrery/test/need"
)

// many returns identities for a number of ports.
func many(t *testing.T, count int) map[string]Identity {
	t.Helper()
	all := map[string]Identity{}
	for i := range count {
		port := fmt.Sprintf("orv%d", i)
		identity, err := Identify(port, Node{MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255),
			Addresses: at(fmt.Sprintf("10.9.%d.%d/16", i>>8, i&255))})
		if err != nil {
			t.Fatal(err)
		}
		all[port] = identity
	}
	return all
}

func open(t *testing.T) *Table {
	t.Helper()
	g, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func commit(t *testing.T, g *Table) {
	t.Helper()
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestFormerTable: a table of a former version, with less information about ports, is replaced and
// keeps its ports.
func TestFormerTable(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	g := open(t)
	g.Held = many(t, 20)
	commit(t, g)
	without := elements{portKey("orv3"): "", portKey("orv4"): ""}
	c := &nftables.Conn{}
	for _, what := range []func(*nftables.Set, []nftables.SetElement) error{c.SetDeleteElements, c.SetAddElements} {
		if err := applyDiff(held.kernelSet(), without, nil, what); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	if g = open(t); g.Whole || len(g.Held) != 20 {
		t.Errorf("a former version's: whole %t, %d ports", g.Whole, len(g.Held))
	}
	delete(g.Held, "orv3")
	commit(t, g)
	if g = open(t); !g.Whole || len(g.Held) != 19 {
		t.Errorf("after a change: whole %t, %d ports", g.Whole, len(g.Held))
	}
}

// TestManyPorts: the table is read as it was written, however often it grows, and can be rewritten
// as a whole.
func TestManyPorts(t *testing.T) {
	need.Integration(t) // only root can send that much in one message
	if !need.Alone(t, "--net") {
		return
	}
	ports := many(t, 3000)
	for count := 250; count <= len(ports); count += 250 {
		g := open(t)
		for i := range count {
			name := fmt.Sprintf("orv%d", i)
			g.Held[name] = ports[name]
		}
		commit(t, g)
		g = open(t)
		if !g.Whole || len(g.Held) != count {
			t.Fatalf("of %d ports %d were read, whole %t", count, len(g.Held), g.Whole)
		}
	}
	g := open(t)
	g.Whole = false
	commit(t, g)
	if g = open(t); !g.Whole || len(g.Held) != len(ports) {
		t.Errorf("made anew, %d ports were read, whole %t", len(g.Held), g.Whole)
	}
}

// TestHold adds ports to the table, and neither reads nor changes other ports.
func TestHold(t *testing.T) {
	if !need.Alone(t, "--net") {
		return
	}
	holds := func(what string, want bool, some map[string]Identity, free ...string) {
		t.Helper()
		if ok, err := AddPorts(some, free); err != nil || ok != want {
			t.Errorf("%s: %t, %v", what, ok, err)
		}
	}
	all := many(t, 400)
	others, one := many(t, 10), map[string]Identity{"orv200": all["orv200"]}
	holds("without a table", false, one)
	g := open(t)
	g.Held = others
	commit(t, g)
	holds("a new port", true, one)
	holds("the same again", true, one, "orv300")
	if g = open(t); !g.Whole || len(g.Held) != 11 {
		t.Errorf("%d ports are held, whole %t", len(g.Held), g.Whole)
	}
	holds("a port that must not be held", false, one, "orv3")
	holds("another identity", false, map[string]Identity{"orv200": all["orv201"]})
	more, err := all["orv200"].Allow("0x88f7")
	if err != nil {
		t.Fatal(err)
	}
	holds("another protocol", false, map[string]Identity{"orv200": more})
	if g = open(t); g.Held["orv200"].mac != one["orv200"].mac || g.Held["orv200"].Allows("0x88f7") {
		t.Errorf("the port is held to %+v", g.Held["orv200"])
	}

	c := &nftables.Conn{}
	c.FlushSet(own.kernelSet())
	c.FlushSet(own6.kernelSet())
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	holds("a set that was emptied", true, all)
	if g = open(t); !g.Whole || len(g.Held) != len(all) {
		t.Errorf("%d ports are held, whole %t", len(g.Held), g.Whole)
	}
	cost := func() float64 { return testing.AllocsPerRun(5, func() { holds("again", true, one) }) }
	beside400 := cost()
	g.Held = others
	commit(t, g)
	if beside10 := cost(); beside400 > beside10*1.05 {
		t.Errorf("beside 400 ports it allocates %v times, beside 10 %v times", beside400, beside10)
	}

	c.FlushChain(&nftables.Chain{Name: arpChain, Table: table})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	holds("a chain that was emptied", false, one)
}
