package observe

import "testing"

// TestRestored: a node that waits for its data is certainly on no other host only if all unknown
// hosts were left out when it was removed.
func TestRestored(t *testing.T) {
	part := func(placed bool, without ...string) *Host {
		return &Host{Name: "sv1", Restoring: &RestoreProgress{Placed: placed, Nodes: []string{"db"}, Without: without}}
	}
	for what, c := range map[string]struct {
		on      *Host
		node    string
		unknown bool
		want    bool
	}{
		"it waits":                  {part(true, "sv2"), "db", true, true},
		"all hosts are known":       {part(true), "db", false, true},
		"another host is unknown":   {part(true, "sv3"), "db", true, false},
		"none was left out":         {part(true), "db", true, false},
		"another node":              {part(true, "sv2"), "web", true, false},
		"not all is in its place":   {part(false, "sv2"), "db", true, false},
		"nothing is being restored": {&Host{Name: "sv1"}, "db", true, false},
		"there is no such host":     {nil, "db", true, false},
	} {
		hosts := map[string]*Host{"sv2": {Name: "sv2", Unknown: c.unknown}}
		if got := c.on.RestorePending(c.node, hosts); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
