package diff

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// declared returns a site with one node, after some edits.
func declared(edits ...func(*site.Site)) *site.Site {
	s := &site.Site{
		Name: "s", Hosts: []site.Host{{Name: "sv1"}}, Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.1.0.0/24")}},
		Volumes:  []site.Volume{{Name: "data"}},
		Roles: []site.Role{{
			Name: "web", Dir: "roles/web", Apt: []string{"nginx", "curl"}, Services: []string{"web.service"},
			Secrets: []site.SecretUse{{Name: "key"}}, Volumes: []site.VolumeUse{{Name: "data", Path: "/srv"}},
			Files: []site.File{
				{Path: "/etc/web.conf", Template: "t", Mode: 0o644, Owner: "root:root",
					Content: []byte("key {{secret \"key\"}}\nport 80\n")},
				{Path: "/usr/bin/web", Source: "web.py", Mode: 0o755, Owner: "root:root", Content: []byte("print()\n")},
			},
			Params: []site.Param{{Name: "port", Type: "int", Default: int64(80)}},
			Steps:  []site.Step{{Name: "seed", When: site.Boot, Script: []byte("true\n")}},
			Env:    map[string]string{"A": "1"},
		}},
		Nodes: []site.Node{{
			Name: "n1", ID: 11, Image: "debian", Roles: []string{"web"}, Engine: "fake", Host: "sv1",
			Limits: site.Limits{Memory: 128 << 20},
			NICs:   []site.NIC{{Network: "lan", Address: netip.MustParseAddr("10.1.0.11")}},
		}},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// nodeOf returns the only node of a site, and a source for it.
func nodeOf(t *testing.T, s *site.Site) (*spec.Node, *spec.Builder) {
	t.Helper()
	b := spec.NewBuilder(s)
	n, err := b.Node(&s.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	return n, b
}

// TestNoLayers: a node that has no layers any more was not made by another version of Orrery.
func TestNoLayers(t *testing.T) {
	lines := changed(t, func(s *site.Site) {
		s.Roles[0].Apt, s.Roles[0].Files = nil, s.Roles[0].Files[:1]
	})
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "- Debian package nginx") ||
		strings.Contains(text, "version of Orrery") {
		t.Errorf("it changes by\n%s", text)
	}
}

// changed returns how an edit changes the node.
func changed(t *testing.T, edit func(*site.Site)) []string {
	t.Helper()
	old, former := nodeOf(t, declared())
	desired, current := nodeOf(t, declared(edit))
	return Sources{current, former}.Node(old, desired)
}

// TestNode: each edit of a site appears as an old and a new value, a diff, or names that are added and
// removed.
func TestNode(t *testing.T) {
	web := func(edit func(*site.Role)) func(*site.Site) { return func(s *site.Site) { edit(&s.Roles[0]) } }
	node := func(edit func(*site.Node)) func(*site.Site) { return func(s *site.Site) { edit(&s.Nodes[0]) } }
	for name, c := range map[string]struct {
		edit func(*site.Site)
		want []string
	}{
		"nothing": {func(*site.Site) {}, nil},
		"memory":  {node(func(n *site.Node) { n.Limits.Memory = 1 << 30 }), []string{"memory: 128MiB -> 1024MiB"}},
		"no memory": {node(func(n *site.Node) { n.Limits.Memory = 0 }),
			[]string{"memory: 128MiB -> none"}},
		"address": {node(func(n *site.Node) { n.NICs[0].Address = netip.MustParseAddr("10.1.0.12") }),
			[]string{"net.lan: 10.1.0.11/24, MTU 1500 -> 10.1.0.12/24, MTU 1500"}},
		"packages": {web(func(r *site.Role) { r.Apt = []string{"nginx", "wget"} }),
			[]string{"+ Debian package wget", "- Debian package curl"}},
		"service": {web(func(r *site.Role) { r.Services = []string{"web.socket"} }),
			[]string{"+ service web.socket", "- service web.service"}},
		"volume": {web(func(r *site.Role) { r.Volumes[0].Path = "/data" }),
			[]string{"volume.data: /srv -> /data"}},
		"image": {func(s *site.Site) { s.Images[0].Packages, s.Images[0].Suite = []string{"vim"}, "trixie" },
			[]string{"+ package vim", "image suite: bookworm -> trixie"}},
		"template": {web(func(r *site.Role) { r.Files[0].Content = []byte("key {{secret \"key\"}}\nport 81\n") }),
			[]string{"--- web: file /etc/web.conf", "+++ web: file /etc/web.conf", "@@ -1,2 +1,2 @@", " key <secret key>",
				"-port 80", "+port 81"}},
		"secret is new": {web(func(r *site.Role) {
			r.Files[1].Template, r.Files[1].Content = "u", []byte("{{secret \"key\"}}\n")
		}),
			[]string{"--- web: file /usr/bin/web", "+++ web: file /usr/bin/web", "@@ -1 +1 @@", "-print()", "+<secret key>"}},
		"mode": {web(func(r *site.Role) { r.Files[1].Mode = 0o700 }),
			[]string{"web: file /usr/bin/web: owner root:root, mode 0755 -> owner root:root, mode 0700"}},
		"removed": {web(func(r *site.Role) { r.Files = r.Files[:1] }),
			[]string{"--- web: file /usr/bin/web", "+++ /dev/null", "@@ -1 +0,0 @@", "-print()"}},
		"script": {web(func(r *site.Role) { r.Steps[0].Script = []byte("false\n") }),
			[]string{"--- web: step seed", "+++ web: step seed", "@@ -1 +1 @@", "-true", "+false"}},
		"env": {web(func(r *site.Role) { r.Env = map[string]string{"A": "2"} }),
			[]string{"--- web: env", "+++ web: env", "@@ -1 +1 @@", "-A=1", "+A=2"}},
		"binary": {web(func(r *site.Role) { r.Files[1].Content = []byte{0, 1} }),
			[]string{"web: file /usr/bin/web: 8 bytes -> 2 bytes"}},
		"large": {web(func(r *site.Role) { r.Files[1].Content = bytes.Repeat([]byte("x"), maxTextBytes+1) }),
			[]string{"web: file /usr/bin/web: 8 bytes -> 262145 bytes"}},
		"parameter": {func(s *site.Site) { s.Settings = site.Settings{"web": {"port": int64(81)}} },
			[]string{"web: parameter port: 80 -> 81"}},
		"health": {web(func(r *site.Role) { r.Health = []site.HealthCheck{{TCP: 80}} }), []string{"health checks changed"}},
	} {
		if got := changed(t, c.edit); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n\t%s\nnot\n\t%s", name, strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
		}
	}
}

// TestLong: a long diff is cut.
func TestLong(t *testing.T) {
	got := changed(t, func(s *site.Site) { s.Roles[0].Files[1].Content = []byte(strings.Repeat("x\n", 1000)) })
	if len(got) != maxDiffLines+1 || got[maxDiffLines] != "… and 804 more lines" {
		t.Errorf("%d lines, ending in %q", len(got), got[len(got)-1])
	}
}

// TestUnrecorded: a text that no source derives with the recorded digest is not shown.
func TestUnrecorded(t *testing.T) {
	old, _ := nodeOf(t, declared())
	later := declared(func(s *site.Site) {
		s.Images[0].Suite = "trixie"
		s.Roles[0].Files[0].Content = []byte("port 81\n")
	})
	desired, current := nodeOf(t, later)
	_, broken := nodeOf(t, declared())
	broken.Site.Roles[0].Files[0].Content = []byte("{{.Nothing}}") // cannot be rendered any more
	want := "web: file /etc/web.conf: " + notRecorded
	for _, sources := range []Sources{{current}, {current, spec.NewBuilder(broken.Site)}, {}} {
		got := sources.Node(old, desired)
		if !slices.Contains(got, want) || slices.Contains(got, "+port 81") ||
			slices.Contains(got, "image: "+notRecorded) != (len(sources) < 2) {
			t.Errorf("%d sources: %v", len(sources), got)
		}
	}
}

// TestPlan: a plan changes nodes that exist and networks. It does not change those that it creates.
func TestPlan(t *testing.T) {
	old, former := nodeOf(t, declared())
	desired, current := nodeOf(t, declared(func(s *site.Site) { s.Nodes[0].Limits.Memory = 1 << 30 }))
	p := &plan.Plan{Steps: []*plan.Step{
		{Kind: plan.MakeNetwork, Host: "sv1", Subject: "new", Network: &spec.Network{Name: "new"}},
		{Kind: plan.MakeNetwork, Host: "sv1", Subject: "lan", Network: &spec.Network{Name: "lan", MTU: 9000},
			OldNetwork: &spec.Network{Name: "lan", MTU: 1500, NAT: true}},
		{Kind: plan.DestroyNode, Host: "sv1", Subject: "n1", Old: old},
		{Kind: plan.CreateNode, Host: "sv1", Subject: "n1", Node: desired},
		{Kind: plan.StartNode, Host: "sv1", Subject: "n1", Node: desired},
		{Kind: plan.CreateNode, Host: "sv1", Subject: "n2", Node: desired},
		{Kind: plan.DestroyNode, Host: "sv1", Subject: "n3", Old: old},
	}}
	var got []string
	for _, c := range (Sources{current, former}).Plan(p) {
		got = append(got, c.Title+": "+strings.Join(c.Lines, "; "))
	}
	want := []string{"network lan of host sv1: mtu: 1500 -> 9000; nat: true -> none", "node n1: memory: 128MiB -> 1024MiB"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestRelease: two releases do not differ in their numbers.
func TestRelease(t *testing.T) {
	old, b := nodeOf(t, declared())
	staged := *old
	staged.ID, staged.Release, staged.Staged = 70011, 700, true
	if got := (Sources{b}).Release(old, &staged); got != nil {
		t.Error(got)
	}
}
