package status

import (
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/graph"
)

// TestLook: only a running node that is healthy, or has no checks, is drawn as good. A node that is
// stopped on purpose is drawn as off.
func TestLook(t *testing.T) {
	for _, c := range []struct {
		state, health string
		want          graph.NodeState
	}{
		{"running", "healthy", graph.NodeState{Health: graph.Good, Word: "healthy"}},
		{"running", "-", graph.NodeState{Health: graph.Good, Word: "running"}},
		{"running", Unhealthy, graph.NodeState{Health: graph.Bad, Word: "unhealthy", Detail: "why"}},
		{"running", Drifted, graph.NodeState{Health: graph.Warning, Word: "drifted", Detail: "why"}},
		{"stopped", "off", graph.NodeState{Health: graph.Off, Word: "stopped"}},
		{"stopped", "-", graph.NodeState{Health: graph.Bad, Word: "stopped", Detail: "why"}},
		{"frozen", "healthy", graph.NodeState{Health: graph.Bad, Word: "frozen", Detail: "why"}},
		{Absent, "-", graph.NodeState{Health: graph.Absent, Word: Absent}},
		{Unknown, Unknown, graph.NodeState{Health: graph.Warning, Word: Unknown}},
	} {
		if got := lookOf(Node{State: c.state, Health: c.health, Detail: "why"}); got.Health != c.want.Health ||
			got.Word != c.want.Word || got.Detail != c.want.Detail {
			t.Errorf("%s, %s: %+v, not %+v", c.state, c.health, got, c.want)
		}
	}
}

// TestHostName: nodes that name no host are on the only host.
func TestHostName(t *testing.T) {
	one, two := site.Host{Name: "sv1"}, site.Host{Name: "sv2"}
	for want, hosts := range map[string][]site.Host{"local": nil, "sv1": {one}, "": {one, two}} {
		if got := hostName(&site.Site{Hosts: hosts}); got != want {
			t.Errorf("%d hosts: %q, not %q", len(hosts), got, want)
		}
	}
}
