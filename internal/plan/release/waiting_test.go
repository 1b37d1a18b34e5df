package release_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// threeNodes returns a site of three nodes, as a release declares it.
func threeNodes(number int) *site.Site {
	s := &site.Site{
		Name: "karoo", Hosts: []site.Host{{Name: host}}, Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24")}},
	}
	for i, name := range []string{"db", "web1", "web2"} {
		s.Nodes = append(s.Nodes, site.Node{Name: name, ID: 11 + i, Image: "debian", Engine: "fake", Host: host,
			Release: number, NICs: []site.NIC{{Network: "lan", Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(11 + i)})}}})
	}
	return s
}

// live returns hosts on which these releases are live.
func live(at map[string]int) []observe.Host {
	return []observe.Host{{Name: host, Releases: observe.Releases{Active: at}}}
}

// TestWaiting: edits of the site directory that do not reach live nodes, because these are of a
// release, are reported with the nodes. Edits of other or unselected nodes are not.
func TestWaiting(t *testing.T) {
	all := map[string]int{"db": 700, "web1": 700, "web2": 700}
	memory := func(names ...string) func(*site.Site) {
		return func(s *site.Site) {
			for i := range s.Nodes {
				if slices.Contains(names, s.Nodes[i].Name) {
					s.Nodes[i].Limits.Memory = 1 << 30
				}
			}
		}
	}
	for what, c := range map[string]struct {
		live  map[string]int
		edit  func(*site.Site)
		stage int
		only  map[string]bool
		lost  bool // the site directory has no such release any more
		want  []string
	}{
		"nothing": {live: all},
		"of one node": {live: all, edit: memory("db"),
			want: []string{"release 700 is live: db: memory changed"}},
		"of two the same": {live: all, edit: memory("web1", "web2"),
			want: []string{"release 700 is live: web1, web2: memory changed"}},
		"of two, each another": {live: all, edit: func(s *site.Site) {
			memory("db")(s)
			s.Nodes[1].Privileged = true
		}, want: []string{"release 700 is live: db: memory changed; web1: privileges changed"}},
		"of one that is asked": {live: all, edit: memory("db", "web1"), only: map[string]bool{"web1": true},
			want: []string{"release 700 is live: web1: memory changed"}},
		"of none that is asked": {live: all, edit: memory("db"), only: map[string]bool{"web1": true}},
		"of one that is not": {live: map[string]int{"web1": 700}, edit: memory("db", "web1"),
			want: []string{"release 700 is live: web1: memory changed"}},
		"of two releases": {live: map[string]int{"web1": 700, "web2": 701},
			edit: memory("db", "web1", "web2"), want: []string{"release 700 is live: web1: memory changed",
				"release 701 is live: web2: memory changed"}},
		"no release is live":    {edit: memory("db")},
		"in quarantine":         {live: all, edit: memory("db"), stage: 700},
		"a node is gone":        {live: all, edit: func(s *site.Site) { s.Nodes = s.Nodes[1:] }},
		"not declared any more": {live: all, edit: memory("db"), lost: true},
		"of unknown kind": {live: all, edit: func(s *site.Site) { s.Roles = nil; s.Nodes[0].ID = 99 },
			want: []string{"release 700 is live: db: it is built differently"}},
		"of a release that nobody knows": {live: map[string]int{"db": 799}, edit: memory("db")},
	} {
		s := threeNodes(0)
		s.Stage = c.stage
		goal := plan.Goal{Nodes: c.only, Releases: map[int]*site.Site{700: threeNodes(700), 701: threeNodes(701)}}
		got := release.PendingEdits(s, live(c.live), goal, map[string]string{"db": host, "web1": host, "web2": host},
			func(number int) (*site.Site, error) {
				if c.lost {
					return nil, errors.New("there is no such release")
				}
				now := threeNodes(number)
				if c.edit != nil {
					c.edit(now)
				}
				return now, nil
			})
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "changes of nodes wait for the next release, because ")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", what, got, c.want)
		}
	}
}

// TestWaitingMany: of many different edits, only some are named.
func TestWaitingMany(t *testing.T) {
	many := func(number int, edited bool) *site.Site {
		s := threeNodes(number)
		n := s.Nodes[0]
		s.Nodes = nil
		for i := range 8 {
			n.Name, n.ID = string(rune('a'+i)), 11+i
			if edited {
				n.Roles = []string{n.Name}
			}
			s.Roles = append(s.Roles, site.Role{Name: n.Name, Services: []string{n.Name + ".service"},
				Env: map[string]string{n.Name: "1"}})
			s.Nodes = append(s.Nodes, n)
		}
		return s
	}
	at := map[string]int{}
	for _, n := range many(0, false).Nodes {
		at[n.Name] = 700
	}
	got := release.PendingEdits(many(0, false), live(at), plan.Goal{Releases: map[int]*site.Site{700: many(700, false)}},
		nil,
		func(number int) (*site.Site, error) {
			return many(number, true), nil
		})
	if len(got) != 1 || !strings.HasSuffix(got[0], "; and 2 more") || strings.Count(got[0], "; ") != 6 {
		t.Errorf("%q", got)
	}
}

// TestReturning: a site without any nodes comes up with the releases that were live, and each is
// reported once.
func TestReturning(t *testing.T) {
	for what, c := range map[string]struct {
		hosts []observe.Host
		stage int
		only  map[string]bool
		want  []string
	}{
		"a release was live": {hosts: live(map[string]int{"db": 700, "web1": 700}), want: []string{"release 700"}},
		"two were": {hosts: live(map[string]int{"db": 701, "web1": 700}),
			want: []string{"release 700", "release 701"}},
		"none was":                    {hosts: live(nil)},
		"of a node that is not asked": {hosts: live(map[string]int{"db": 700}), only: map[string]bool{"web1": true}},
		"in quarantine":               {hosts: live(map[string]int{"db": 700}), stage: 700},
		"nodes are there": {hosts: append(live(map[string]int{"db": 700}),
			observe.Host{Name: "sv2", Nodes: []observe.Node{{Node: spec.Node{Name: "web1"}}}})},
		"a host is silent": {hosts: append(live(map[string]int{"db": 700}),
			observe.Host{Name: "sv2", Unknown: true})},
		"it is not known any more": {hosts: live(map[string]int{"db": 799})},
	} {
		s := threeNodes(0)
		s.Stage = c.stage
		got := release.ReturningReleases(s, c.hosts, plan.Goal{Nodes: c.only,
			Releases: map[int]*site.Site{700: threeNodes(700), 701: threeNodes(701)}})
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], " is started again")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", what, got, c.want)
		}
	}
}

// TestDownWarns: taking down a whole site reports the releases that come up with it again.
func TestDownWarns(t *testing.T) {
	hosts := live(map[string]int{"db": 700, "web1": 701, "web2": 0})
	hosts[0].Nodes = []observe.Node{{Node: spec.Node{Name: "db", ID: 700011, Release: 700}, State: observe.Running}}
	for what, c := range map[string]struct {
		hosts []observe.Host
		only  map[string]bool
		want  int
	}{
		"all of it": {hosts: hosts, want: 2},
		"some":      {hosts: hosts, only: map[string]bool{"db": true}},
		"nothing":   {hosts: []observe.Host{{Name: host, Releases: hosts[0].Releases}}},
	} {
		p, err := release.Down(threeNodes(0), c.hosts, plan.Goal{Nodes: c.only})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Warnings) != c.want || c.want > 0 && !strings.HasPrefix(p.Warnings[0], "release 700 stays live") {
			t.Errorf("%s: %q", what, p.Warnings)
		}
	}
}

// TestDownDuringTrial: nodes that a trial needs to go back are not taken down, the whole site is.
func TestDownDuringTrial(t *testing.T) {
	hosts := live(map[string]int{"db": 701, "web1": 701, "web2": 0})
	hosts[0].Releases.Trial = &observe.Trial{Release: 701, Back: map[string]int{"db": 700, "web1": 0}}
	for name, want := range map[string]string{"db": "go back to release 700", "web1": "go back to release none",
		"web2": ""} {
		_, err := release.Down(threeNodes(0), hosts, plan.Goal{Nodes: map[string]bool{name: true}})
		if want == "" && err != nil ||
			want != "" && (!problem.Is(err, problem.Mistake) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := release.Down(threeNodes(0), hosts, plan.Goal{}); err != nil {
		t.Error(err)
	}
}
