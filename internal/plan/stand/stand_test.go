package stand_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestVolumesOnce: an interrupted exchange of volumes has recorded both versions. The resulting
// node has each volume once, as it was declared.
func TestVolumesOnce(t *testing.T) {
	data, shared := spec.Mount{Volume: "data", Path: "/a", Exclusive: true}, spec.Mount{Volume: "shared", Path: "/b"}
	none, copied := data, data
	none.Copy, none.Release = spec.NoCopy, 701
	copied.Copy, copied.Release = "snapshot", 701
	live, retired := []spec.Mount{shared, data}, []spec.Mount{shared, none}
	for name, mounts := range map[string][]spec.Mount{
		"live": live, "retired": retired, "staged": {shared, copied},
		"half retired": {data, shared, none}, "half taken": {copied, shared, data}, "half taken after": {none, shared, data},
	} {
		n := spec.Node{Release: 701, Mounts: mounts}
		if got := stand.AsLive(n).Mounts; !slices.Equal(got, live) {
			t.Errorf("%s, live: %+v", name, got)
		}
		if got := stand.AsRetired(n).Mounts; name != "staged" && !slices.Equal(got, retired) {
			t.Errorf("%s, retired: %+v", name, got)
		}
		if got := len(stand.AsRetired(n).Mounts); got != 2 {
			t.Errorf("%s, retired: %d volumes", name, got)
		}
	}
}

// TestReleased: each node is as its live release declares it, on the host that the site declares. A
// live release that is unknown is reported with its number.
func TestReleased(t *testing.T) {
	nodes := func(release int, memory int64) []site.Node {
		return []site.Node{{Name: "db", Host: "sv1", Release: release, Limits: site.Limits{Memory: memory}},
			{Name: "web", Release: release, Limits: site.Limits{Memory: memory}}}
	}
	s, of := &site.Site{Name: "karoo", Nodes: nodes(0, 1)}, &site.Site{Name: "karoo", Nodes: nodes(700, 2)[:1]}
	of.Nodes[0].Host = "sv9"
	for what, c := range map[string]struct {
		live  map[string]int
		stage int
		db    int // its release
		lost  int
	}{
		"nothing is live":  {},
		"a release is":     {live: map[string]int{"db": 700}, db: 700},
		"of none":          {live: map[string]int{"db": 0}},
		"of another node":  {live: map[string]int{"web": 700}}, // the release does not have it
		"one that is gone": {live: map[string]int{"db": 701}, lost: 701},
		"in quarantine":    {live: map[string]int{"db": 701}, stage: 701},
	} {
		s.Stage = c.stage
		got, err := stand.Released(s, []observe.Host{{}, {Releases: observe.Releases{Active: c.live}}},
			map[int]*site.Site{700: of})
		if c.lost != 0 {
			var lost *stand.LostError
			if !errors.As(err, &lost) || lost.Release != c.lost || !problem.Is(err, problem.Failed) ||
				!strings.Contains(err.Error(), "release 701 of node db") {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil || got.Nodes[0].Release != c.db || got.Nodes[0].Host != "sv1" || got.Nodes[1].Release != 0 ||
			(got.Nodes[0].Limits.Memory == 2) != (c.db == 700) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		if s.Nodes[0].Release != 0 {
			t.Fatalf("%s: the site itself has changed", what)
		}
	}
}
