package release_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/site"
)

// TestPublishMoves: a port that both releases declare leads to an address, which moves with the
// links, and needs no step. Others change in one step after the links have moved, and go back with
// them.
//
// Promise (Networks): Published ports of a release lead to its nodes only while it is live; twins
// publish none. With plan/release.TestSwitchReaches, site/twin.TestPublishNothing.
func TestPublishMoves(t *testing.T) {
	port := func(text string) []site.Publish {
		p, err := site.ParsePublish(text)
		if err != nil {
			t.Fatal(err)
		}
		return []site.Publish{p}
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		name := w.site.Nodes[0].Name
		for i := range w.site.Nodes {
			w.site.Nodes[i].Publish = nil
		}
		n, _ := w.site.Node(name)
		n.Publish = port("8080:80")
		w.ports = map[int]map[string][]site.Publish{700: {name: port("8080:80")}, 701: {name: port("8081:80")}}
		w.must(w.up())
		w.stage(700)
		w.stage(701)
		published := func(want string) {
			t.Helper()
			var all []string
			for _, on := range w.observe()[0].Networks {
				if on.Publish != "" {
					all = append(all, on.Publish)
				}
			}
			if got := strings.Join(all, " "); got != name+"="+want+">10.0.0.10" {
				t.Fatalf("published is %s", got)
			}
		}
		published("8080:80/tcp")
		same, err := w.turn(release.Goal{To: map[string]int{name: 700}})
		w.must(same, err)
		if slices.ContainsFunc(same.Steps, func(s *plan.Step) bool {
			return s.Kind == plan.MakeNetwork && s.Network.Publish != ""
		}) {
			t.Fatalf("the same port needs a step:\n%s", text(same))
		}
		published("8080:80/tcp")
		other, err := w.turn(release.Goal{To: map[string]int{name: 701}})
		w.must(other, err)
		for _, s := range other.Steps {
			after := before(other, s)
			for _, moved := range other.Steps {
				if s.Kind == plan.MakeNetwork && s.Network.Publish != "" && moved.Kind == plan.MoveLinks && !after[moved.N] {
					t.Fatalf("the port changes before the links:\n%s", text(other))
				}
			}
		}
		published("8081:80/tcp")
		w.must(w.turn(release.Goal{To: map[string]int{name: 700}, Back: true}))
		published("8080:80/tcp")

		w.host.Around = observe.HostNetworking{Listeners: []observe.Listener{{Proto: "tcp", Address: anyAddress, Port: 8081}}}
		if _, err := w.turn(release.Goal{To: map[string]int{name: 701}}); err == nil ||
			!strings.Contains(err.Error(), "listens at 0.0.0.0:8081") {
			t.Fatalf("the port is taken: %v", err)
		}
	})
}

var anyAddress = netip.IPv4Unspecified()
