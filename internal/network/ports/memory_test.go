package ports

import (
	"testing"

	"github.com/google/nftables/expr"

	"orrery/test/frames"
	"orrery/test/nftest"
)

// inMemory returns the table with nodes' identities for package nftest.
func inMemory(t *testing.T, nodes map[string]Node) *nftest.Table {
	t.Helper()
	table := &Table{Held: map[string]Identity{}}
	for port, n := range nodes {
		i, err := Identify(port, n)
		if err != nil {
			t.Fatal(err)
		}
		table.Held[port] = i
	}
	all := &nftest.Table{Chains: map[string][][]expr.Any{}, Sets: map[string]map[string]bool{}}
	for name, keys := range table.keys() {
		all.Sets[name] = map[string]bool{}
		for key := range keys {
			all.Sets[name][key] = true
		}
	}
	all.Sets[holding.name] = map[string]bool{}
	for _, c := range chains {
		for _, r := range c.rules {
			all.Chains[c.name] = append(all.Chains[c.name], r.exprs())
		}
	}
	return all
}

// TestFramesInMemory sends a frame of each kind through the rules, on any machine. TestFrames
// checks that the kernel does the same.
func TestFramesInMemory(t *testing.T) {
	declared := node(first)
	declared.Addresses, declared.Protocols = append(declared.Addresses, at("2001:db8::9/128", "fe80::1234/128")...),
		"0x88b5,0x88f7"
	more := map[string]bool{"ipv6-global": true, "ptp": true, "experimental": true}
	for what, c := range map[string]struct {
		port    string
		nodes   map[string]Node
		allowed func(frames.Kind) bool
	}{
		"held": {"orv1", map[string]Node{"orv1": node(first), "orv2": node(second)},
			func(k frames.Kind) bool { return k.Allowed }},
		"declared": {"orv1", map[string]Node{"orv1": declared, "orv2": node(second)},
			func(k frames.Kind) bool { return k.Allowed || more[k.Name] }},
		"not held":   {"orv1", map[string]Node{"orv2": node(second)}, func(frames.Kind) bool { return true }},
		"other host": {"orx0123456789", map[string]Node{"orv1": node(first)}, func(frames.Kind) bool { return true }},
	} {
		table := inMemory(t, c.nodes)
		for _, k := range frames.All() {
			got := table.Run(prerouting, &nftest.Packet{In: c.port, Frame: k.Frame(first, second)})
			if passes := got.Verdict != "drop"; passes != c.allowed(k) {
				t.Errorf("%s: %-30s passes: %t", what, k.Name, passes)
			}
		}
	}
}
