package overlay

import (
	"fmt"
	"net/netip"
	"testing"

	"orrery/internal/site/spec"
)

// TestManyWays: if a network has very many hosts, each has paths to its neighbours only.
func TestManyWays(t *testing.T) {
	many := &span{peers: map[string]spec.Peer{}, mtu: 1450, over: overheadIPv4}
	for i := range 50 {
		many.peers[fmt.Sprintf("sv%02d", i)] = spec.Peer{Address: netip.AddrFrom4([4]byte{10, 8, 1, byte(i)})}
	}
	ways, from := Spans{"lan": many}.Paths(), map[string]int{}
	for _, w := range ways {
		from[w.From]++
		from[w.To]++
	}
	for name, n := range from {
		if n != 2*maxPaths {
			t.Errorf("host %s has %d ways", name, n)
		}
	}
	if len(from) != 50 || len(ways) != 50*maxPaths {
		t.Errorf("%d hosts have %d ways", len(from), len(ways))
	}
}
