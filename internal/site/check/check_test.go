package check

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"orrery/internal/site"
	"orrery/test/need"
)

// large returns a site without mistakes, with nodes on hosts and roles that wait for each other.
func large(nodes int) *site.Site {
	s := &site.Site{
		Name: "large", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/8"),
			Gateway: netip.MustParseAddr("10.0.0.1"), MTU: 1500}},
		Roles: []site.Role{{Name: "base", Dir: "roles/base"}},
	}
	for i := range 200 {
		s.Hosts = append(s.Hosts, site.Host{Name: fmt.Sprint("h", i), Address: fmt.Sprint("root@h", i)})
	}
	for i := range 100 {
		r := site.Role{Name: fmt.Sprint("role", i), NeedsRoles: []string{"base"},
			Env: map[string]string{fmt.Sprint("V", i): "x"}}
		if i > 0 {
			r.NeedsHealthy = []string{fmt.Sprintf("role=role%d", i-1)}
		}
		r.Files = []site.File{{Path: fmt.Sprint("/etc/f", i), Owner: "root:root"}}
		s.Roles = append(s.Roles, r)
	}
	for i := range nodes {
		id := i + 2
		s.Nodes = append(s.Nodes, site.Node{
			Name: fmt.Sprint("node", i), ID: id, Image: "debian", Engine: "lxc", Host: fmt.Sprint("h", i%200),
			Roles: []string{fmt.Sprint("role", i%100)}, Limits: site.Limits{Cpus: 1, Memory: 1 << 29, Pin: "0-3"},
			NICs: []site.NIC{{Network: "lan", Address: site.DeriveAddress("large", fmt.Sprint("node", i), id, s.Networks[0])}},
		})
	}
	return s
}

func TestCheckIsFast(t *testing.T) {
	need.Linear(t, 2_500, func(nodes int) func() {
		s := large(nodes)
		for _, m := range Check(s) {
			t.Errorf("%+v", m)
		}
		return func() { Check(s) }
	})
}

func TestCheckIsFastOnBadSites(t *testing.T) {
	need.Linear(t, 2_500, func(nodes int) func() {
		s := large(nodes)
		for i := range s.Nodes {
			n := &s.Nodes[i]
			n.ID, n.NICs[0].Address = 1, netip.MustParseAddr("10.0.0.1")
		}
		for i := range s.Roles {
			s.Roles[i].NeedsHealthy = []string{"all", "role=role*"}
		}
		return func() { Check(s) }
	})
}

func TestWaits(t *testing.T) {
	make := func(needs map[string]string, nodes ...string) *site.Site {
		s := &site.Site{Name: "x", Images: []site.Image{{Name: "debian", Suite: "bookworm"}}}
		for _, role := range []string{"a", "b", "c"} {
			r := site.Role{Name: role}
			if needs[role] != "" {
				r.NeedsHealthy = []string{needs[role]}
			}
			s.Roles = append(s.Roles, r)
		}
		for i, roles := range nodes {
			s.Nodes = append(s.Nodes, site.Node{Name: fmt.Sprint("n", i), ID: i + 1, Image: "debian", Engine: "lxc",
				Roles: strings.Fields(roles)})
		}
		return s
	}
	for name, c := range map[string]struct {
		site *site.Site
		want string
	}{
		"chain":       {make(map[string]string{"a": "role=b", "b": "role=c"}, "a", "b", "c"), ""},
		"itself":      {make(map[string]string{"a": "role=b"}, "a b", "b"), ""},
		"only itself": {make(map[string]string{"a": "role=a"}, "a"), ""},
		"each other":  {make(map[string]string{"a": "role=b", "b": "role=a"}, "a", "b"), "n1 → n0 → n1"},
		"peers":       {make(map[string]string{"a": "role=a"}, "a", "a"), "n1 → n0 → n1"},
		"by way of a third": {make(map[string]string{"a": "role=b", "b": "role=c", "c": "role=a"}, "a", "b", "c"),
			"n2 → n0 → n1 → n2"},
		"two roles of a node": {make(map[string]string{"a": "role=b", "b": "role=c"}, "a c", "b"), "n1 → n0 → n1"},
	} {
		got := ""
		for _, m := range Check(c.site) {
			_, got, _ = strings.Cut(m.What, "healthy: ")
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// TestPips: packages that pip installs for roles are pinned for the nodes, and not only for other
// systems.
func TestPips(t *testing.T) {
	for text, want := range map[string]string{
		"Requests==2.31.0":                                                "",
		"requests[socks]==2.31.0":                                         "",
		"requests==2.31.0 ; sys_platform == 'win32'":                      `Python package "requests" is in r.txt for other systems only: sys_platform == 'win32'`,
		"requests==2.31.0 ; python_version >= '3'":                        "",
		"requests==1 ; os_name == 'nt'\nrequests==2 ; os_name == 'posix'": "",
		"request==1": `Python package "requests" is not in r.txt`,
	} {
		s := &site.Site{
			Name: "x", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
			Roles: []site.Role{{Name: "a", Pip: []string{"requests"}}},
			Nodes: []site.Node{{Name: "n", ID: 1, Image: "debian", Engine: "lxc", Roles: []string{"a"},
				Requirements: site.Requirements{File: "r.txt", Text: text}}},
		}
		got := ""
		for _, m := range Check(s) {
			got += m.What
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPins(t *testing.T) {
	for text, wrong := range map[string]string{
		"": "", "# all\n\na==1\nB.b[x,y] == 2.0.post1 # note\nc===3;python_version>'3'": "",
		"--require-hashes\na==1 --hash=sha256:0 \\\n   --hash=sha256:1\nb==1 \\\n --hash=sha256:2": "",
		"a==1 --hash=sha256:0\nb==1": "2", "a": "1", "a>=1": "1", "a==1.*": "1", "a==1,>0": "1", "a @ https://x/a.whl": "1",
		"./a.whl": "1", "-e .": "1", "a==1\nA==2": "2", "x_y==1\nx-Y==1": "2", "a==1\\\n": "", "-c=x": "1",
		"a==1!1.0": "", "a[b]==1": "", "a==1#c": "1", "a==one": "1",
		"a==1 ; sys_platform == 'win32'\na==2 ; sys_platform == 'linux'": "",
		"a==1 ; sys_platform == 'win32'\na==2":                           "", "a==1 ; sys_platform == 'linux'\na==2": "2",
		"a==1\na==2 ; sys_platform == 'linux'": "2", "a==1\na==2 ; python_version < '3'": "",
		"a==1 ; os_name == 'posix'#c": "1", "a[b c]==1": "1", "a==1 ; os == 'posix'": "1",
	} {
		s := &site.Site{Name: "x", Releases: []site.Release{{Number: 1,
			Requirements: site.Requirements{File: "r.txt", Text: text}}}}
		got := ""
		for _, m := range Check(s) {
			got += m.Key[2]
		}
		if got != wrong {
			t.Errorf("%q: lines %q, not %q", text, got, wrong)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s := large(10_000)
	for b.Loop() {
		Check(s)
	}
}
