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
	why := fmt.Sprintf("%d bytes were to go out by %q and %d to come in; its counters show %d and %d",
		got.sent, name, got.received, own.Sent, own.Received)
	if !ok {
		why = fmt.Sprintf("there is no interface %q in the place", name)
	}
	for other, t := range seen {
		if other != name && t.Sent >= got.sent && t.Received >= got.received {
			why += ", and those of " + other + " as much"
		}
	}
	return []test.Label{{Name: "path", Why: why,
		Cure: "see that the far end is reached by that interface: ip route get ADDRESS"}}
}
