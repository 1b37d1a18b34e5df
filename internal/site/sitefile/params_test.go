package sitefile

import (
	"reflect"
	"testing"

	"orrery/internal/site/params"
	"orrery/internal/site/spec"
)

// TestSettings: a parameter of a role has its default, or what the site file says for all nodes, a group or
// the node; the last one counts.
func TestSettings(t *testing.T) {
	s := mustLoad(t, `site.name = "x"
image.debian.suite = "bookworm"
[role.tuned]
peers = ["a1"]
vip = "10.1.2.3"
[node."n{1..3}"]
id = 1
roles = ["tuned"]
[node.own]
id = 9
roles = ["tuned"]
role.tuned = { port = 7, peers = [] }
[group.z]
nodes = ["n*", "own"]
role.tuned = { mode = "fast", port = 5 }
[group.b]
nodes = ["n2"]
role.tuned.port = 6
`)
	role, _ := s.Role("tuned")
	for i, want := range []struct {
		port  int64
		peers []string
		env   string
	}{{5, []string{"a1"}, "ORRERY_PARAM_PEERS=a1"}, {6, []string{"a1"}, "ORRERY_PARAM_PEERS=a1"},
		{5, []string{"a1"}, "ORRERY_PARAM_PEERS=a1"}, {7, []string{}, "ORRERY_PARAM_PEERS="}} {
		n := &s.Nodes[i]
		got := params.Of(s, n, role)
		if got["port"] != want.port || !reflect.DeepEqual(got["peers"], want.peers) || got["mode"] != "fast" ||
			got["cache"] != int64(64<<20) {
			t.Errorf("%s has %v", n.Name, got)
		}
		if env := params.Env(s, n, role); len(env) != 5 || env[2] != want.env {
			t.Errorf("%s has the variables %q", n.Name, env)
		}
	}
}

// TestHealthParams: the checks of a node have the values of its parameters, and only a check with a changed
// value changes the digest of the node's health checks.
func TestHealthParams(t *testing.T) {
	s := mustLoad(t, `site.name = "x"
image.debian.suite = "bookworm"
[role."orrery/nginx"]
port = 81
[node]
n1 = { id = 1, roles = ["orrery/nginx", "orrery/prometheus-node-exporter"] }
n2 = { id = 2, roles = ["orrery/nginx", "orrery/prometheus-node-exporter"], role."orrery/nginx".max_body = "2MiB" }
n3 = { id = 3, roles = ["orrery/nginx", "orrery/prometheus-node-exporter"], role."orrery/nginx".port = 8080 }
`)
	var digests []string
	build := spec.NewBuilder(s)
	for i, want := range []int{81, 81, 8080} {
		n := &s.Nodes[i]
		actions, err := build.RoleActions(n)
		if err != nil {
			t.Fatal(err)
		}
		if h := actions.Roles[0].Health[0]; h.TCP != want || h.TCPParam != "" {
			t.Errorf("%s is checked at %+v", n.Name, h)
		}
		if h := actions.Roles[1].Health[0]; h.HTTP != "http://127.0.0.1:9100/metrics" {
			t.Errorf("%s is checked at %+v", n.Name, h)
		}
		node, err := build.Node(n)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, node.Config.Health)
	}
	if digests[0] != digests[1] || digests[0] == digests[2] {
		t.Errorf("the digests are %q", digests)
	}
}
