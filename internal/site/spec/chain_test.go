package spec

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/site"
)

// someRoles are roles of every kind: with content, with services only, with services that wait for
// other nodes, and empty.
var someRoles = map[string]*site.Role{
	"cam": {Name: "cam", Apt: []string{"python3"}},
	"portal": {Name: "portal", Files: []site.File{{Path: "/srv/portal", Content: []byte("x")}},
		Services: []string{"portal.service"}},
	"db":    {Name: "db", Apt: []string{"postgresql"}, Steps: []site.Step{{Name: "schema", When: site.Boot}}},
	"cron":  {Name: "cron", Services: []string{"cron.service"}},
	"proxy": {Name: "proxy", Pip: []string{"aiokatcp"}},
	"late":  {Name: "late", NeedsHealthy: []string{"role=db"}},
	"empty": {Name: "empty"},
}

func rolesOf(names []string) []*site.Role {
	var all []*site.Role
	for _, name := range names {
		all = append(all, someRoles[name])
	}
	return all
}

func chainOf(names []string) []*Layer {
	base := Base(site.Mirror{}, site.Image{Name: "debian", Suite: "bookworm"})
	return RoleLayers(site.Mirror{}, base, rolesOf(names), "aiokatcp==2.2\n")
}

// TestChains: nodes whose roles begin alike share the layers of these roles. A node has only a few
// layers, and each layer knows all layers below it.
func TestChains(t *testing.T) {
	names := []string{"cam", "portal", "db", "cron", "proxy", "late", "empty"}
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Permutation(names).Draw(t, "one")[:rapid.IntRange(0, len(names)).Draw(t, "length")]
		common := rapid.IntRange(0, min(len(one), maxRoleLayers-1)).Draw(t, "common")
		other := slices.Clone(one[:common])
		for _, name := range rapid.Permutation(names).Draw(t, "other") {
			if !slices.Contains(other, name) && rapid.Bool().Draw(t, name) {
				other = append(other, name)
			}
		}
		a, b := chainOf(one), chainOf(other)
		for i, l := range chainOf(one[:common]) {
			if a[i].Digest != l.Digest || b[i].Digest != l.Digest {
				t.Fatalf("%v and %v do not share the layer %s", one, other, l.Title)
			}
		}
		if len(a) > maxRoleLayers {
			t.Fatalf("%v make %d layers", one, len(a))
		}
		for i, l := range a {
			var lower []string
			for _, below := range slices.Backward(a[:i]) {
				lower = append(lower, below.Digest)
			}
			if !slices.Equal(l.Below, lower) || !slices.Equal(l.Lower(), append(lower, l.Base)) {
				t.Fatalf("%v: layer %s stands on %v and not on %v", one, l.Title, l.Below, lower)
			}
		}
	})
}

// TestStarts: all roles up to a layer decide whether services start at boot.
func TestStarts(t *testing.T) {
	for _, c := range []struct {
		roles []string
		want  []string
	}{
		{[]string{"portal"}, []string{"portal.service"}},
		{[]string{"cron", "portal"}, []string{"cron.service", "portal.service"}},
		{[]string{"late", "portal"}, nil},
		{[]string{"portal", "db"}, nil},
		{[]string{"portal", "cam"}, []string{"portal.service"}},
	} {
		chain := chainOf(c.roles)
		if got := chain[len(chain)-1].BootServices(); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v", c.roles, got)
		}
	}
}
