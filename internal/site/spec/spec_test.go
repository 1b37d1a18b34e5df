package spec

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/site"
	"orrery/internal/site/secretspec"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

func observatory() *site.Site {
	swap := int64(0)
	return &site.Site{
		Name: "karoo", Images: []site.Image{{Name: "debian", Suite: "bookworm", Packages: []string{"vim"}}},
		Networks: []site.Network{
			{Name: "data", Subnet: netip.MustParsePrefix("10.2.0.0/16"), MTU: 9000},
			{Name: "cam", Subnet: netip.MustParsePrefix("10.1.0.0/24"), Gateway: netip.MustParseAddr("10.1.0.1"), NAT: true},
		},
		Volumes: []site.Volume{{Name: "archive", Remote: site.Remote{NFS: "nas:/archive"}, Shared: true}},
		Roles: []site.Role{
			{Name: "base", Apt: []string{"less"}},
			{
				Name: "receptor", NeedsRoles: []string{"base"}, Apt: []string{"python3"}, Pip: []string{"aiokatcp"},
				Services: []string{"receptor.service"},
				Env:      map[string]string{"PORT": "7147", "HOME": `a "b" $c \`},
				Secrets:  []site.SecretUse{{Name: "key", Owner: "root:root", Mode: 0o400}},
				Files: []site.File{
					{Path: "/usr/bin/receptor", Source: "receptor.py", Content: []byte("print()\n"), Owner: "root:root", Mode: 0o755},
					{Path: "/etc/receptor", Template: "receptor.tmpl", Content: []byte("{{.Node.Name}} {{secret \"key\"}}\n"),
						Owner: "root:root", Mode: 0o600},
				},
				Steps: []site.Step{
					{Name: "compile", When: site.Build, Run: "compile.sh", Script: []byte("make\n"), Interpreter: []string{"/bin/sh"}},
					{Name: "seed", When: site.Boot, Run: "seed.sh", Script: []byte("seed\n"), Interpreter: []string{"/bin/sh"}},
				},
				Volumes: []site.VolumeUse{{Name: "archive", Path: "/archive", Owner: "root:root", Mode: 0o755}},
				Health:  []site.HealthCheck{{Line: 12, TCP: 7147, Timeout: time.Second}},
				Beside: map[string][]byte{
					"receptor.py": []byte("print()\n"), "receptor.tmpl": []byte("x"), "compile.sh": []byte("make\n"),
					"seed.sh":   []byte("seed\n"),
					"table.csv": []byte("1,2\n"),
				},
			},
		},
		Nodes: []site.Node{
			{
				Name: "receptor1", ID: 201, Image: "debian", Roles: []string{"receptor"}, Engine: "lxc", Autostart: true,
				Host:   "sv1",
				Limits: site.Limits{Cpus: 1.5, Memory: 1 << 30, Swap: &swap},
				NICs: []site.NIC{{Network: "data", Address: netip.MustParseAddr("10.2.0.201")},
					{Network: "cam", Address: netip.MustParseAddr("10.1.0.201")}},
				Requirements: site.Requirements{Text: "aiokatcp==1.8\n"},
			},
			{Name: "plain", ID: 202, Image: "debian", Engine: "lxc",
				NICs: []site.NIC{{Network: "cam", Address: netip.MustParseAddr("10.1.0.202")}}},
		},
	}
}

func nodeOf(t *testing.T, s *site.Site, i int) *Node {
	t.Helper()
	n, err := NewBuilder(s).Node(&s.Nodes[i])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestGolden: specs recorded next to nodes are compared with those of later versions. A change here
// recreates all nodes.
func TestGolden(t *testing.T) {
	s := observatory()
	got, err := json.MarshalIndent(map[string]any{
		"networks": NewBuilder(s).Networks(), "receptor1": nodeOf(t, s, 0), "plain": nodeOf(t, s, 1), "names": NamesDigest(s),
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/spec.golden"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("the spec is not as in %s (go test ./internal/site/spec -update writes it anew):\n%s", file, got)
	}
}

func TestNoSecretInSpec(t *testing.T) {
	a := nodeOf(t, observatory(), 0)
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "<secret") {
		t.Error("rendered text is in the spec")
	}
}

// TestWhatChanges: what an edit changes: the layer (rebuilt, the node is replaced), the
// configuration (applied again), or neither.
func TestWhatChanges(t *testing.T) {
	role := func(s *site.Site) *site.Role { return &s.Roles[1] }
	for _, c := range []struct {
		name          string
		edit          func(s *site.Site)
		layer, config string // as returned by spec.DescribeChanges
		base, health  bool
	}{
		{name: "nothing", edit: func(*site.Site) {}},
		{name: "apt", edit: func(s *site.Site) { role(s).Apt = []string{"jq"} }, layer: "receptor: apt changed"},
		{name: "pip", edit: func(s *site.Site) { role(s).Pip = nil },
			layer: "pypi removed, receptor: pip removed, requirements removed"},
		{name: "source", edit: func(s *site.Site) { role(s).Files[0].Content = nil },
			layer: "receptor: file /usr/bin/receptor changed"},
		{name: "mode of source", edit: func(s *site.Site) { role(s).Files[0].Mode = 0o700 },
			layer: "receptor: file /usr/bin/receptor changed"},
		{name: "build step", edit: func(s *site.Site) { role(s).Steps[0].Script = nil },
			layer: "receptor: step compile changed"},
		{name: "timeout", edit: func(s *site.Site) { role(s).Steps[0].Timeout = 7; role(s).Steps[1].Timeout = 7 }},
		{name: "line", edit: func(s *site.Site) {
			role(s).Steps[0].Line = 7
			role(s).Files[1].Line = 7
			role(s).Health[0].Line = 7
		}},
		{name: "description", edit: func(s *site.Site) { role(s).Description = "x" }},
		{name: "requirements", edit: func(s *site.Site) { s.Nodes[0].Requirements.Text = "x==1" },
			layer: "requirements changed"},
		{name: "comment in requirements", edit: func(s *site.Site) {
			s.Nodes[0].Requirements.Text = "# x\n\n aiokatcp==1.8   # y\n"
		}},
		{
			name: "hash in requirements", edit: func(s *site.Site) {
				s.Nodes[0].Requirements.Text = "aiokatcp==1.8 --hash=sha256:00#00\n"
			},
			layer: "requirements changed",
		},
		{name: "boot step", edit: func(s *site.Site) { role(s).Steps[1].Script = nil },
			config: "receptor: step seed changed"},
		{name: "template", edit: func(s *site.Site) { role(s).Files[1].Content = []byte("x") },
			config: "receptor: file /etc/receptor changed"},
		{name: "owner of template", edit: func(s *site.Site) { role(s).Files[1].Owner = "x:x" },
			config: "receptor: file /etc/receptor changed"},
		{
			name: "the text that stands for a secret", edit: func(s *site.Site) {
				role(s).Files[1].Content = []byte("{{.Node.Name}} <secret key>\n")
			},
			config: "receptor: file /etc/receptor changed",
		},
		{name: "format of secret", edit: func(s *site.Site) {
			s.Secrets = []site.Secret{{Name: "key", Generate: 32, Format: secretspec.Hex}}
		}, config: "receptor: secret key changed"},
		{name: "own secret", edit: func(s *site.Site) {
			s.Secrets = []site.Secret{{Name: "key", Generate: 32, Per: secretspec.PerNode}}
		}, config: "receptor: secret key changed"},
		{name: "readers of secret", edit: func(s *site.Site) {
			s.Secrets = []site.Secret{{Name: "key", Generate: 32, Readers: []string{"receptor"}}}
		}},
		{name: "mode of secret", edit: func(s *site.Site) { role(s).Secrets[0].Mode = 0o440 },
			config: "receptor: secret key changed"},
		{name: "env", edit: func(s *site.Site) { role(s).Env = nil }, layer: "receptor: env changed",
			config: "receptor: env removed"},
		{
			name: "file beside", edit: func(s *site.Site) { role(s).Beside["table.csv"] = nil },
			layer: "receptor: table.csv changed", config: "receptor: table.csv changed",
		},
		{name: "template beside", edit: func(s *site.Site) { role(s).Beside["receptor.tmpl"] = nil }},
		{name: "volume", edit: func(s *site.Site) { s.Volumes[0].NFS = "nas:/x" },
			config: "receptor: volume archive changed"},
		{name: "health", edit: func(s *site.Site) { role(s).Health[0].TCP = 1 }, health: true},
		{name: "need", edit: func(s *site.Site) { role(s).NeedsRoles = nil }, layer: "base: apt removed"},
		{
			name: "packages", edit: func(s *site.Site) { s.Images[0].Packages = nil }, base: true,
		},
		{name: "order and doubles of packages", edit: func(s *site.Site) {
			s.Images[0].Packages = []string{"vim", "dbus", "vim"}
		}},
		{name: "name of image", edit: func(s *site.Site) { s.Images[0].Name, s.Nodes[0].Image = "deb", "deb" }},
		{name: "mirror", edit: func(s *site.Site) { s.Mirror.Apt = "http://mirror" }, base: true},
		{name: "peers", edit: func(s *site.Site) { s.Nodes[1].Name = "other" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := observatory()
			before := nodeOf(t, s, 0)
			s = observatory()
			c.edit(s)
			after := nodeOf(t, s, 0)
			if got := DescribeChanges(before.Parts, after.Parts); got != c.layer {
				t.Errorf("layer: %q, want %q", got, c.layer)
			}
			if (before.Layer != after.Layer) != (c.layer != "" || c.base) {
				t.Errorf("digest of the layer: %s, then %s", before.Layer, after.Layer)
			}
			if (before.Base != after.Base) != c.base {
				t.Errorf("digest of the base: %s, then %s", before.Base, after.Base)
			}
			if got := DescribeChanges(before.Config.Parts, after.Config.Parts); got != c.config {
				t.Errorf("configuration: %q, want %q", got, c.config)
			}
			if (before.Config.Health != after.Config.Health) != c.health {
				t.Errorf("digest of the health checks: %s, then %s", before.Config.Health, after.Config.Health)
			}
		})
	}
}

func TestOrderOfRolesIsInTheLayer(t *testing.T) {
	s := observatory()
	a := top(s, 0)
	s.Nodes[0].Roles = []string{"base", "receptor"} // a needed role comes first anyway
	if b := top(s, 0); a.Digest != b.Digest || a.Title != "debian + base, receptor" {
		t.Errorf("%s %s, %s %s", a.Title, a.Digest, b.Title, b.Digest)
	}
	if l := top(s, 1); !l.IsBase() {
		t.Errorf("a node without roles has the layer %s", l.Title)
	}
}

func TestLayerIsSpeltOnce(t *testing.T) {
	s := observatory()
	s.Nodes = append(s.Nodes, s.Nodes[0])
	m := NewBuilder(s)
	if a, b := m.Layers(&s.Nodes[0]), m.Layers(&s.Nodes[2]); a[len(a)-1] != b[len(b)-1] {
		t.Error("two nodes alike have not the same layers")
	}
}

// top returns the topmost layer of a node.
func top(s *site.Site, node int) *Layer {
	all := NewBuilder(s).Layers(&s.Nodes[node])
	return all[len(all)-1]
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		was, is PartDigests
		want    string
	}{
		{nil, nil, ""},
		{PartDigests{"a": "1"}, PartDigests{"a": "1"}, ""},
		{PartDigests{"a": "1", "b": "1"}, PartDigests{"a": "2", "c": "1"}, "a changed, b removed, c added"},
		{nil, PartDigests{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1"}, "a added, b added, c added, and 2 more"},
	} {
		if got := DescribeChanges(c.was, c.is); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestHosts(t *testing.T) {
	want := `127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
10.2.0.201 receptor1.data.karoo
10.1.0.201 receptor1.karoo receptor1 receptor1.cam.karoo
10.1.0.202 plain.karoo plain plain.cam.karoo
`
	if got := string(HostsFile(observatory(), []string{"cam"})); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestEnv(t *testing.T) {
	s := observatory()
	want := "HOME=\"a \\\"b\\\" \\$c \\\\\"\nPORT=\"7147\"\n"
	if got := string(EnvFile(s.RolesOf(&s.Nodes[0]))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNames: Names covers everything that nodes know of one another, and nothing else.
func TestNames(t *testing.T) {
	before := NamesDigest(observatory())
	for name, edit := range map[string]func(*site.Site){
		"name": func(s *site.Site) { s.Nodes[0].Name = "x" }, "id": func(s *site.Site) { s.Nodes[0].ID = 1 },
		"address":  func(s *site.Site) { s.Nodes[1].NICs[0].Address = netip.MustParseAddr("10.1.0.9") },
		"roles":    func(s *site.Site) { s.Nodes[1].Roles = []string{"base"} },
		"group":    func(s *site.Site) { s.Nodes[1].Groups = []string{"x"} },
		"host":     func(s *site.Site) { s.Nodes[0].Host = "sv2" },
		"vars":     func(s *site.Site) { s.Nodes[0].Vars = map[string]any{"x": 1} },
		"one less": func(s *site.Site) { s.Nodes = slices.Delete(s.Nodes, 0, 1) },
	} {
		s := observatory()
		if edit(s); NamesDigest(s) == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	s := observatory()
	s.Nodes[0].Limits.Cpus, s.Nodes[0].Autostart, s.Roles[1].Apt = 7, false, nil
	if NamesDigest(s) != before {
		t.Error("limits change what nodes know of one another")
	}
}

// TestAddresses: a recorded NIC of an earlier version can be read, and is written in the same form.
func TestAddresses(t *testing.T) {
	text := `{"name":"eth0","network":"lan","bridge":"orb1","host_end":"orv1","mac":"02:00:00:00:00:01","address":"10.1.0.7/24",` +
		`"gateway":"10.1.0.1","mtu":1500,"ipv6":"2001:db8::9,fe80::1234"}`
	var nic NIC
	if err := json.Unmarshal([]byte(text), &nic); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(nic.Addresses()); got != "[10.1.0.7/24 2001:db8::9/128 fe80::1234/128]" {
		t.Error(got)
	}
	if again, err := json.Marshal(nic); err != nil || string(again) != text {
		t.Errorf("%s, %v", again, err)
	}
	nic.IPv6 = "10.1.0.8,none," // the node must not send from these
	if got := fmt.Sprint(nic.Addresses()); got != "[10.1.0.7/24]" {
		t.Error(got)
	}
}
