package mpi

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// traffic is what an interface has received and sent, in bytes.
type traffic struct {
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
}

// A tally is the traffic of each interface.
type tally map[string]traffic

// count reads the counters of all interfaces in a place (proc_pid_net(5)): those of the network namespace in which the
// command runs.
func count(ctx context.Context, p *place.Place) (tally, error) {
	out, err := place.Output(ctx, p, p.Command("cat", "/proc/self/net/dev")...)
	if err != nil {
		return nil, err
	}
	return parseCounters(string(out))
}

func parseCounters(text string) (tally, error) {
	all := tally{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 16 { // the two lines at the head
			continue
		}
		in, err := strconv.ParseUint(fields[0], 10, 64)
		out, err2 := strconv.ParseUint(fields[8], 10, 64)
		if err != nil || err2 != nil {
			return nil, problem.New(problem.Failed, "/proc/net/dev has no counters in %.80q", line)
		}
		all[strings.TrimSpace(name)] = traffic{in, out}
	}
	return all, nil
}

// since is what was counted after another count.
func (t tally) since(before tally) tally {
	all := tally{}
	for name, now := range t {
		all[name] = traffic{now.Received - before[name].Received, now.Sent - before[name].Sent}
	}
	return all
}

// proof labels the trial unless the payload is seen in the counters of the interface that it was to go by.
func proof(name string, seen tally, got measured) []test.Label {
	own, there := seen[name]
	if there && own.Sent >= got.sent && own.Received >= got.received {
		return nil
	}
	why := fmt.Sprintf("%d bytes were to go out by %q and %d to come in; its counters show %d and %d",
		got.sent, name, got.received, own.Sent, own.Received)
	if !there {
		why = fmt.Sprintf("there is no interface %q in the place", name)
	}
	for other, t := range seen {
		if other != name && t.Sent >= got.sent && t.Received >= got.received {
			why += ", and those of " + other + " as much"
		}
	}
	return []test.Label{{Name: "path", Why: why, Cure: "see that the far end is reached by that interface: ip route get ADDRESS"}}
}
