package test

import (
	"testing"
)

// TestTwoStateDirectories: a site that is up is neither started nor destroyed from another state
// directory.
func TestTwoStateDirectories(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-states", "[network.lan]\nsubnet = \"10.99.126.0/24\"\n[image.debian]\nsuite = \"bookworm\"\n[node.one]\nid = 1\n",
		nil)
	s.do("up")
	before := s.init("one")
	other := s.at(newBareHome(t, "states"))
	for _, verb := range []string{"plan", "status", "up", "down"} {
		other.run(verb).want(4, "site it-states already exists on this machine, with its state in "+s.dirs.State,
			"ORRERY_STATE="+s.dirs.State+" orrery down")
	}
	if after := s.init("one"); after != before {
		t.Errorf("init of the node was %s and is %s", before, after)
	}
	s.settled()
	s.do("down")
	other.run("down").want(0)
	s.wantNoTrace()
}
