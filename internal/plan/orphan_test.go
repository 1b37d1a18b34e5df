package plan_test

import (
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestOrphans: the plan names the volumes that no node uses any more, and their probable heirs.
func TestOrphans(t *testing.T) {
	pgdata := func(node string) observe.Volume {
		return observe.Volume{Name: "pgdata", Node: node, Path: "/v/pgdata/" + node}
	}
	former := observe.Node{Node: spec.Node{Name: "db0", ID: 101, Mounts: []spec.Mount{{Volume: "pgdata"}}}}
	for name, c := range map[string]struct {
		edit  func(s *site.Site)
		there []observe.Volume
		nodes []observe.Node
		want  string // the text for the user, or "" for none
	}{
		"in use": {there: []observe.Volume{pgdata("db")}},
		"the only one": {there: []observe.Volume{pgdata("old")},
			want: "volume pgdata of old is not used by any node, and db looks like its successor: orrery volume adopt old db assigns the data to it"},
		"has data of its own": {there: []observe.Volume{pgdata("db"), pgdata("old")},
			want: "volume pgdata of old is not used by any node: orrery volume adopt old NODE"},
		"the same id": {there: []observe.Volume{pgdata("db"), pgdata("db0")}, nodes: []observe.Node{former},
			want: "orrery volume adopt db0 db assigns the data to it"},
		"another volume": {
			edit:  func(s *site.Site) { s.Roles[2].Volumes[0].Name = "postgres" },
			there: []observe.Volume{pgdata("db")},
			want:  "volume pgdata of db is not used by any node, and db looks like its successor: orrery volume adopt db db pgdata=postgres assigns",
		},
		"the nearest": {
			edit: func(s *site.Site) {
				s.Nodes[1].Roles, s.Nodes[1].Name = []string{"db"}, "db2"
				s.Nodes[0].Name = "archive"
			},
			there: []observe.Volume{pgdata("db1")}, want: "orrery volume adopt db1 db2 assigns",
		},
		"shared": {there: []observe.Volume{{Name: "common", Path: "/v/common/@all"}},
			want: "volume common, formerly shared, is not used by any node: it is kept at /v/common/@all"},
		"shared, and used": {
			edit:  func(s *site.Site) { s.Volumes = []site.Volume{{Name: "pgdata", Shared: true}} },
			there: []observe.Volume{{Name: "pgdata", Path: "/v/pgdata/@all"}},
		},
		"elsewhere": {
			nodes: []observe.Node{{Node: spec.Node{Name: "db0", ID: 101,
				Mounts: []spec.Mount{{Volume: "pgdata", Source: "/srv/pg"}}}}},
			want: "orrery volume adopt db0 db assigns",
		},
		"of a release that is kept": {there: []observe.Volume{{Name: "former", Node: "db", Path: "/v/former/db"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := observatory()
			if c.edit != nil {
				c.edit(s)
			}
			kept := observatory()
			kept.Roles[2].Volumes[0].Name = "former"
			releases := map[int]*site.Site{}
			if strings.Contains(name, "release") {
				releases[700] = kept
			}
			p, err := plan.Up(s, []observe.Host{{Name: "sv1", Cpus: 8, Memory: 1 << 40, Volumes: c.there, Nodes: c.nodes}},
				plan.Goal{Releases: releases})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(p.Orphans) > 0:
				t.Errorf("orphans %v", p.Orphans)
			case c.want != "" && (len(p.Orphans) != 1 || !strings.Contains(p.Orphans[0].String(), c.want)):
				t.Errorf("orphans %v, want %q", p.Orphans, c.want)
			}
		})
	}
}
