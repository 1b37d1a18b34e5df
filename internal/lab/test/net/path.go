package net

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
)

// checkPath returns a label if the counters of the expected interface do not account for the bytes
// that a part moved. Headers and other traffic only increase the counters.
func checkPath(p *place.Place, part part, f *flow, before, after map[string]place.Traffic) []test.Label {
	delta := func(name string) float64 {
		if part.direction == reverse {
			return float64(after[name].Received - before[name].Received)
		}
		return float64(after[name].Sent - before[name].Sent)
	}
	if p.Interface == "" || delta(p.Interface) >= 0.95*f.Bytes {
		return nil
	}
	most, other := 0.0, "none"
	for name := range after {
		if d := delta(name); d > most {
			most, other = d, name
		}
	}
	return []test.Label{{
		Name: "path", Where: part.name(),
		Why: fmt.Sprintf("of %.0f bytes, only %.0f went through %s; %s had the most, %.0f", f.Bytes, delta(p.Interface),
			p.Interface, other, most),
		Cure: fmt.Sprintf("check the routes of %s: the traffic to the far end should go through %s", p.Name, p.Interface),
	}}
}

// mtu returns the MTU of the place's interface, or 0 if there is none or it cannot be read.
func mtu(ctx context.Context, p *place.Place) int {
	if p.Interface == "" {
		return 0
	}
	out, err := place.Output(ctx, p, "/bin/cat", "/sys/class/net/"+p.Interface+"/mtu")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return n
}

// endMTUs holds the MTUs of the two ends.
type endMTUs struct {
	Near int `json:"near"`
	Far  int `json:"far"`
}

// labels returns a label if the two MTUs differ.
func (f endMTUs) labels() []test.Label {
	if f.Near == 0 || f.Far == 0 || f.Near == f.Far {
		return nil
	}
	return []test.Label{{
		Name: "mtu", Why: fmt.Sprintf("the MTU is %d here and %d at the far end", f.Near, f.Far),
		Cure: "set the same MTU at both ends and on the path between them",
	}}
}

// datagram returns the largest UDP payload that fits into one frame at both ends, without the
// headers of UDP (8 bytes) and IP (20 or 40 bytes).
func (f endMTUs) datagram(to *place.Place) int {
	least := min(f.Near, f.Far)
	if least == 0 {
		least = max(f.Near, f.Far)
	}
	if least == 0 {
		least = 1500
	}
	headers := 28
	if to.Address.Is6() && !to.Address.Is4In6() {
		headers = 48
	}
	return min(max(least-headers, packetBytes), 65507) // 65507: the limit of UDP and of iperf3
}
