package hosts

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"orrery/internal/plan/overlay"
	"orrery/internal/problem"
)

// TestTooSmall: the error names the largest packet size that arrives and the cure. It suggests a
// smaller MTU only if the network allows one that small.
func TestTooSmall(t *testing.T) {
	w := overlay.Path{Network: "lan", From: "sv1", To: "sv2", At: netip.MustParseAddr("10.8.1.1"),
		There: netip.MustParseAddr("10.8.1.2"), Size: 1500, Over: 50}
	for arrives, says := range map[int]string{
		1500: "", 1600: "", 0: "host sv2 does not answer a ping from 10.8.1.1 at 10.8.1.2",
		1499: "mtu = 1449 in [network.lan]", 1000: "mtu = 950 in [network.lan]",
		50 + overlay.MinMTU: "mtu = 576 in [network.lan]",
		49 + overlay.MinMTU: "increase the MTU between them", 1: "increase the MTU between them",
	} {
		err := checkPacketSize(w, arrives)
		if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) ||
			!problem.Is(err, problem.Unable)) {
			t.Errorf("if %d bytes arrive: %v", arrives, err)
		}
		if err != nil && arrives > 0 && !strings.Contains(err.Error(), fmt.Sprintf("packets larger than %d bytes", arrives)) {
			t.Errorf("if %d bytes arrive, that is not said: %v", arrives, err)
		}
	}
}
