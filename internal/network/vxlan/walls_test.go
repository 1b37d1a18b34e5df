package vxlan

import (
	"bytes"
	"testing"

	"github.com/google/nftables/expr"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestFromNodes: what comes in by a link of Orrery's own is from a node and no host, and nothing else is: an interface of the host may be called orange0.
func TestFromNodes(t *testing.T) {
	w, err := underlay(spec.Network{Site: "toykat", Name: "lan", VXLAN: spec.VXLAN{ID: 4711, Local: "10.8.1.1", Peers: "10.8.1.2"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, dropped := range map[string]bool{
		"orange0": false, "or0": false, "eth0": false,
		site.BridgeName("toykat", "lan"): true, site.VethName("toykat", "a", "lan"): true, site.RoutedName("toykat", "toykat", "a", "lan"): true, "oro0123456789": true,
	} {
		// The rule that lets pass what is from a host comes first, and must not match what the others drop.
		for _, why := range []string{"from a node", "from a host"} {
			found := false
			for _, r := range w.rules {
				if r.chain != input || r.why != why {
					continue
				}
				for _, e := range r.match {
					if compare, ok := e.(*expr.Cmp); ok && bytes.HasPrefix([]byte(name), compare.Data) && (compare.Op == expr.CmpOpEq) == (why == "from a node") {
						found = true
					}
				}
			}
			if found != dropped {
				t.Errorf("what comes in by %s is dropped by the rule %q: %v", name, why, found)
			}
		}
	}
}
