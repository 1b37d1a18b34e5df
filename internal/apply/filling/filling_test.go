package filling

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/site"
)

// original returns a site of two nodes with volumes, and one without.
func original() *site.Site {
	s := &site.Site{
		Name: "karoo", Hosts: []site.Host{{Name: "sv1"}, {Name: "sv2", Address: "sv2"}},
		Images:   []site.Image{{Name: "debian", Suite: "bookworm"}},
		Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24")}},
		Roles: []site.Role{{Name: "db", Volumes: []site.VolumeUse{{Name: "rows", Path: "/srv"},
			{Name: "log", Path: "/log"}}}},
	}
	for i, name := range []string{"db", "ledger", "web"} {
		n := site.Node{Name: name, ID: 11 + i, Image: "debian", Engine: "fake"}
		if i < 2 {
			n.Roles = []string{"db"}
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// TestShares: each host copies the volumes that both a twin's node and its original have, for the
// nodes whose data it has. Data does not go to another host.
func TestShares(t *testing.T) {
	lost := errors.New("it is on two hosts")
	at := map[string]string{"db": "sv1", "ledger": "sv2"}
	for what, c := range map[string]struct {
		change func(s *site.Site)
		home   func(n *site.Node) (string, error)
		want   string
		wrong  string
	}{
		"all": {want: "sv1: db log, db rows; sv2: ledger log, ledger rows"},
		"some nodes": {change: func(s *site.Site) { s.Nodes = s.Nodes[1:] },
			want: "sv2: ledger log, ledger rows"},
		"a node of its own": {change: func(s *site.Site) { s.Nodes[0].Name = "new" },
			want: "sv2: ledger log, ledger rows"},
		"on the host that has it": {change: func(s *site.Site) { s.Nodes[0].Host = "sv1" },
			want: "sv1: db log, db rows; sv2: ledger log, ledger rows"},
		"on another host": {change: func(s *site.Site) { s.Nodes[0].Host = "sv2" },
			wrong: "node db is on host sv1 with its volumes, and its twin is declared on sv2"},
		"nobody knows where": {home: func(*site.Node) (string, error) { return "", lost }, wrong: lost.Error()},
		"a volume less": {change: func(s *site.Site) { s.Roles[0].Volumes = s.Roles[0].Volumes[:1] },
			want: "sv1: db rows; sv2: ledger rows"},
	} {
		twin := original()
		twin.Twin, twin.Original = "dev", original()
		if c.change != nil {
			c.change(twin)
		}
		if c.home == nil {
			c.home = func(n *site.Node) (string, error) { return at[n.Name], nil }
		}
		all, err := CopiesByHost(twin, c.home)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if got := words(all); err != nil || got != c.want {
			t.Errorf("%s: %s, not %s (%v)", what, got, c.want, err)
		}
	}
}

func words(all map[string][]apply.VolumeCopy) string {
	var hosts []string
	for host, shares := range all {
		var of []string
		for _, s := range shares {
			of = append(of, s.Node+" "+s.From.Volume)
			if s.From.Volume != s.To.Volume {
				of = append(of, "becomes "+s.To.Volume)
			}
		}
		slices.Sort(of)
		hosts = append(hosts, host+": "+strings.Join(of, ", "))
	}
	slices.Sort(hosts)
	return strings.Join(hosts, "; ")
}
