package nodes

import (
	"testing"

	"orrery/internal/control"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// TestSpots: the parsed arguments of cp.
func TestSpots(t *testing.T) {
	s := &site.Site{Nodes: []site.Node{{Name: "db"}, {Name: "web"}}}
	for arg, want := range map[string]pathArg{
		"/srv/a":     {path: "/srv/a"},
		"/srv/":      {path: "/srv/"},
		"/srv/db:80": {path: "/srv/db:80"},
		"db:":        {nodes: []*site.Node{&s.Nodes[0]}, path: "/root/"},
		"db:/etc/a":  {nodes: []*site.Node{&s.Nodes[0]}, path: "/etc/a"},
		"all:a":      {nodes: []*site.Node{&s.Nodes[0], &s.Nodes[1]}, many: true, path: "/root/a"},
	} {
		got, err := parsePathArg(s, arg)
		if err != nil || got.path != want.path || got.many != want.many || len(got.nodes) != len(want.nodes) {
			t.Errorf("%s: %+v, %v", arg, got, err)
		}
	}
	many, web := pathArg{nodes: []*site.Node{&s.Nodes[0]}, many: true, path: "/a"},
		pathArg{nodes: []*site.Node{&s.Nodes[1]}, many: true, path: "/a"}
	for what, all := range map[string][]pathArg{"from several to several": {many, many},
		"of two selectors": {{path: "/a"}, many, web}} {
		if _, err := groupToCopy(t.Context(), &control.Session{}, s, all); problem.ExitCode(err) != int(problem.Usage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
