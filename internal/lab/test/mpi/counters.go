package mpi

import (
	"fmt"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
)

// A tally is the traffic of each interface.
type tally map[string]place.Traffic

// since returns the traffic after an earlier tally.
func (t tally) since(before tally) tally {
	all := tally{}
	for name, now := range t {
		all[name] = place.Traffic{Received: now.Received - before[name].Received, Sent: now.Sent - before[name].Sent}
	}
	return all
}

// checkTraffic returns a label unless the counters of the expected interface account for the payload.
func checkTraffic(name string, seen tally, got measured) []test.Label {
	own, ok := seen[name]
	if ok && own.Sent >= got.sent && own.Received >= got.received {
		return nil
	}
	why := fmt.Sprintf("at least %d bytes had to leave through %q and %d to arrive; its counters show %d and %d",
		got.sent, name, got.received, own.Sent, own.Received)
	if !ok {
		why = fmt.Sprintf("the place has no interface %q", name)
	}
	for other, t := range seen {
		if other != name && t.Sent >= got.sent && t.Received >= got.received {
			why += ", those of " + other + " as many"
		}
	}
	return []test.Label{{Name: "path", Why: why,
		Cure: "check that the far end is reached through that interface: ip route get ADDRESS"}}
}
