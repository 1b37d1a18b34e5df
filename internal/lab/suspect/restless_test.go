package suspect

import (
	"strings"
	"testing"

	"orrery/internal/lab/probe"
)

func TestRestless(t *testing.T) {
	second := func(cpu probe.Times, nodes, self float64) []probe.Second {
		cpu.Idle = 4 - cpu.Total()
		return []probe.Second{{Took: 1, CPU: cpu, Cgroups: map[string]probe.Usage{"veth": {User: nodes}},
			Self: probe.Usage{System: self}}}
	}
	for name, c := range map[string]struct {
		seconds []probe.Second
		want    string
	}{
		"idle":               {second(probe.Times{User: 0.1}, 0, 0), ""},
		"a busy neighbour":   {second(probe.Times{User: 1}, 0, 0), "other processes use 1.00 of the 4 processors"},
		"the lab's own":      {second(probe.Times{User: 1, System: 0.5}, 0.9, 0.5), ""},
		"its nodes and more": {second(probe.Times{User: 2}, 0.9, 0), "other processes use 1.10 of the 4 processors"},
		"the hypervisor":     {second(probe.Times{Steal: 0.2}, 0, 0), "the hypervisor took 5.0 %"},
		"nothing was seen":   {nil, ""},
	} {
		if got := BusyReason(c.seconds); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if NodesIdle(second(probe.Times{User: 1}, 0.5, 0)) || !NodesIdle(second(probe.Times{User: 1}, 0.01, 0)) {
		t.Error("nodes that start are told from nodes at rest wrongly")
	}
}
