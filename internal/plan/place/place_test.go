package place_test

import (
	"fmt"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

const gib = 1 << 30

func machines(cpus ...int) []observe.Host {
	var all []observe.Host
	for i, n := range cpus {
		all = append(all, observe.Host{Name: fmt.Sprint("sv", i+1), Cpus: n, Memory: int64(n) * 4 * gib})
	}
	return all
}

func crowd(n int, limits site.Limits) *site.Site {
	s := &site.Site{Name: "rapid", Hosts: []site.Host{{Name: "sv1"}, {Name: "sv2"}}}
	for i := range n {
		s.Nodes = append(s.Nodes, site.Node{Name: fmt.Sprint("node", i), ID: 1 + i, Limits: limits})
	}
	return s
}

// homes gives how many nodes each host has.
func homes(t *testing.T, s *site.Site, seen []observe.Host) map[string]int {
	t.Helper()
	placed, err := place.Place(s, seen)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, n := range placed.Nodes {
		count[n.Host]++
	}
	return count
}

func TestPlaceSpreads(t *testing.T) {
	limits := site.Limits{Cpus: 1, Memory: gib}
	if got := homes(t, crowd(10, limits), machines(8, 8)); got["sv1"] != 5 || got["sv2"] != 5 {
		t.Errorf("on hosts of one size: %v", got)
	}
	if got := homes(t, crowd(9, limits), machines(4, 8)); got["sv1"] != 3 || got["sv2"] != 6 {
		t.Errorf("on hosts of which one is twice the other: %v", got)
	}
	if got := homes(t, crowd(10, site.Limits{}), machines(8, 8)); got["sv1"] != 5 || got["sv2"] != 5 {
		t.Errorf("nodes without limits: %v", got)
	}
}

// TestPlaceOnTwo: a host that says it has a node of another takes nothing from that: not if the site says where the node belongs, and else nobody guesses.
func TestPlaceOnTwo(t *testing.T) {
	s, seen := crowd(2, site.Limits{Cpus: 1, Memory: gib}), machines(8, 8)
	for i := range seen {
		seen[i].Nodes = []observe.Node{{Node: spec.Node{Name: "node0"}, State: observe.Running}}
	}
	if _, err := place.Place(s, seen); !problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), "node0 is on host sv1 and on host sv2") {
		t.Errorf("two hosts say that they have it: %v", err)
	}
	for _, home := range []string{"sv1", "sv2"} {
		s.Nodes[0].Host = home
		placed, err := place.Place(s, seen)
		if err != nil || placed.Nodes[0].Host != home {
			t.Errorf("of a node that belongs to %s: %v", home, err)
		}
	}
}

func TestPlaceKeepsWhatIsThere(t *testing.T) {
	s := crowd(3, site.Limits{Cpus: 1})
	s.Nodes[2].Host = "sv1"
	seen := machines(2, 16)
	seen[0].Nodes = []observe.Node{{Node: spec.Node{Name: "node0", ID: 1}}}
	placed, err := place.Place(s, seen)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"sv1", "sv2", "sv1"} {
		if got := placed.Nodes[i].Host; got != want {
			t.Errorf("node%d is on %s, not on %s", i, got, want)
		}
	}
	if s.Nodes[0].Host != "" {
		t.Error("the site itself was changed")
	}
}

func TestPlaceHeedsWhatIsDeclaredOfHosts(t *testing.T) {
	s := crowd(4, site.Limits{Cpus: 1})
	s.Hosts[0].Cpus = 1
	if got := homes(t, s, machines(64, 4)); got["sv1"] != 1 || got["sv2"] != 3 {
		t.Errorf("a host of which one processor is given: %v", got)
	}
}

func TestPlaceWithoutRoom(t *testing.T) {
	_, err := place.Place(crowd(9, site.Limits{Memory: 8 * gib}), machines(8, 8))
	if problem.Exit(err) != int(problem.Mistake) || !strings.Contains(err.Error(), "node8") || !strings.Contains(err.Error(), "8192 MiB") {
		t.Errorf("the ninth node of 8 GiB on two hosts of 32 GiB: %v", err)
	}
	over := crowd(2, site.Limits{Cpus: 6})
	over.Nodes[0].Host, over.Nodes[1].Host = "sv1", "sv1"
	if _, err := place.Place(over, machines(8, 8)); err != nil {
		t.Errorf("who names the host may overcommit it: %v", err)
	}
}

func TestPlaceOnUnknownHost(t *testing.T) {
	s := crowd(1, site.Limits{})
	s.Nodes[0].Host = "sv9"
	if _, err := place.Place(s, machines(8)); err == nil || !strings.Contains(err.Error(), `"sv9"`) {
		t.Errorf("a node on a host that nobody looked at: %v", err)
	}
}
