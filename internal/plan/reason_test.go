package plan_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
	"orrery/internal/site/traffic"
)

// observatory is a small site: two receptors, a database with a volume, and a portal that needs
// both.
func observatory() *site.Site {
	s := &site.Site{
		Name: "rapid", Hosts: []site.Host{{Name: "sv1"}}, Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Networks: []site.Network{
			{Name: "cam", Subnet: netip.MustParsePrefix("10.1.0.0/24"), Gateway: netip.MustParseAddr("10.1.0.1"), NAT: true},
		},
		Roles: []site.Role{
			{Name: "base", Dir: "roles/base"},
			{
				Name: "receptor", Dir: "roles/receptor", NeedsRoles: []string{"base"}, Apt: []string{"python3"},
				Pip:      []string{"aiokatcp"},
				Services: []string{"receptor.service"},
				Files: []site.File{
					{Path: "/etc/receptor.json", Template: "receptor.json.tmpl", Content: []byte("{{.Node.Name}}\n")},
					{Path: "/usr/bin/receptor", Source: "receptor.py", Content: []byte("print()\n")},
				},
				Health: []site.HealthCheck{{TCP: 7147, Timeout: time.Second}},
			},
			{
				Name: "db", Dir: "roles/db", NeedsRoles: []string{"base"}, Apt: []string{"postgresql"},
				Volumes: []site.VolumeUse{{Name: "pgdata", Path: "/var/lib/postgresql"}},
				Steps:   []site.Step{{Name: "schema", When: site.Boot, Script: []byte("createdb x\n")}},
				Params:  []site.Param{{Name: "port", Type: "int", Default: int64(5432)}},
				Health:  []site.HealthCheck{{TCP: 5432, Timeout: time.Second}},
				Beside:  map[string][]byte{"schema.sql": []byte("create table x;\n")},
			},
			{
				Name: "portal", Dir: "roles/portal", NeedsHealthy: []string{"role=db", "role=receptor"},
				Files: []site.File{{Path: "/etc/portal", Template: "t",
					Content: []byte("{{range peers \"receptor\"}}{{.Address}} {{end}}")}},
				Health: []site.HealthCheck{{HTTP: "http://127.0.0.1/", Timeout: time.Second}},
			},
		},
	}
	for i, n := range []struct{ name, role string }{{"db", "db"}, {"receptor1", "receptor"}, {"receptor2", "receptor"},
		{"portal", "portal"}} {
		s.Nodes = append(s.Nodes, site.Node{
			Name: n.name, ID: 101 + i, Image: "debian", Roles: []string{n.role}, Engine: "fake", Autostart: true, Host: "sv1",
			Requirements: site.Requirements{Text: "aiokatcp==1.8\n"},
			NICs:         []site.NIC{{Network: "cam", Address: netip.AddrFrom4([4]byte{10, 1, 0, byte(101 + i)})}},
		})
	}
	return s
}

// lines returns a plan as its user reads it.
func lines(p *plan.Plan) []string {
	var all []string
	for _, s := range p.Steps {
		all = append(all, s.String())
	}
	return all
}

func wantLines(t *testing.T, p *plan.Plan, want ...string) {
	t.Helper()
	if got := lines(p); !slices.Equal(got, want) {
		t.Errorf("the plan is\n\t%s\nnot\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

const anew = "; recreated, " + stand.Loss

// replacement describes how a node gets another layer.
func replacement(node, why string, health bool) []string {
	halt := "kill"
	if node == "db" { // its volume has data to save
		halt = "stop"
	}
	all := []string{
		"node " + node + ": " + halt + ": " + why, "node " + node + ": recreate: " + why + anew,
		"node " + node + ": start: after the change",
		"node " + node + ": configure: apply roles again",
	}
	if health {
		all = append(all, "node "+node+": check: check health")
	}
	return all
}

func TestReasons(t *testing.T) {
	receptor := func(s *site.Site) *site.Role { return &s.Roles[1] }
	db := func(s *site.Site) *site.Role { return &s.Roles[2] }
	base := func(s *site.Site) *site.Role { return &s.Roles[0] }
	both := func(why string) []string {
		return slices.Concat(replacement("receptor1", why, true), replacement("receptor2", why, true))
	}
	for _, c := range []struct {
		name  string
		edit  func(s *site.Site)
		want  []string
		build []string // titles of the layers built
	}{
		{name: "nothing", edit: func(*site.Site) {}},
		{
			name: "template", edit: func(s *site.Site) { receptor(s).Files[0].Content = []byte("{{.Node.ID}}\n") },
			want: []string{
				"node receptor1: configure: receptor: file /etc/receptor.json changed",
				"node receptor1: check: check health",
				"node receptor2: configure: receptor: file /etc/receptor.json changed",
				"node receptor2: check: check health",
			},
		},
		{name: "a template that comes to the same", edit: func(s *site.Site) {
			receptor(s).Files[0].Content = []byte("{{/* who */}}{{.Node.Name}}\n")
		}},
		{
			name: "apt", edit: func(s *site.Site) { receptor(s).Apt = []string{"python3", "jq"} },
			want: both("role layer changed: receptor: apt changed"), build: []string{"debian + receptor"},
		},
		{
			name: "file", edit: func(s *site.Site) { receptor(s).Files[1].Content = []byte("print(1)\n") },
			want: both("role layer changed: receptor: file /usr/bin/receptor changed"), build: []string{"debian + receptor"},
		},
		{
			name: "a need of others", edit: func(s *site.Site) { base(s).Apt = []string{"less"} },
			want: slices.Concat(replacement("db", "role layer changed: base: apt added", true),
				both("role layer changed: base: apt added")),
			build: []string{"debian + base", "debian + base, db", "debian + base, receptor"},
		},
		{
			name: "a need that has no part in the layer", edit: func(s *site.Site) {
				s.Nodes[1].Roles = []string{"portal", "receptor"}
			},
			want: []string{"host sv1: names: names, addresses or roles changed",
				"node receptor1: configure: portal: file /etc/portal added", "node receptor1: check: check health"},
		},
		{
			name: "requirement", edit: func(s *site.Site) { s.Nodes[2].Requirements.Text = "aiokatcp==1.9\n" },
			want:  replacement("receptor2", "role layer changed: requirements changed", true),
			build: []string{"debian + receptor"},
		},
		{name: "a comment in the requirements", edit: func(s *site.Site) {
			s.Nodes[2].Requirements.Text = "# pinned\naiokatcp==1.8  # why\n"
		}},
		{name: "requirements that no role uses", edit: func(s *site.Site) { s.Nodes[0].Requirements.Text = "x==1\n" }},
		{
			name: "step", edit: func(s *site.Site) { db(s).Steps[0].Script = []byte("createdb y\n") },
			want: []string{"node db: configure: db: step schema changed", "node db: check: check health"},
		},
		{
			name: "a file that a step reads", edit: func(s *site.Site) {
				db(s).Beside = map[string][]byte{"schema.sql": []byte("create table y;\n")}
			},
			want: []string{"node db: configure: db: schema.sql changed", "node db: check: check health"},
		},
		{
			name: "a parameter", edit: func(s *site.Site) {
				s.Settings = site.Settings{"db": {"port": int64(5433)}, "other": {"port": int64(1)}}
			},
			want: []string{"node db: configure: db: parameter port changed", "node db: check: check health"},
		},
		{
			name: "health", edit: func(s *site.Site) { db(s).Health = []site.HealthCheck{{TCP: 5433}} },
			want: []string{"node db: check: health not checked yet"},
		},
		{
			name: "services", edit: func(s *site.Site) { receptor(s).Services = []string{"receptor2.service"} },
			want: []string{
				"node receptor1: configure: services changed", "node receptor1: check: check health",
				"node receptor2: configure: services changed", "node receptor2: check: check health",
			},
		},
		{
			name: "limits", edit: func(s *site.Site) { s.Nodes[1].Limits = site.Limits{Cpus: 2, Memory: 1 << 30} },
			want: []string{"node receptor1: update: cpus changed, memory changed",
				"node receptor1: check: check health"},
		},
		{
			name: "limits of traffic", edit: func(s *site.Site) {
				s.Nodes[1].NICs[0].Traffic = traffic.Limits{Rate: 1e9, Latency: time.Millisecond}
			},
			want: []string{"node receptor1: update: traffic on network cam added", "node receptor1: check: check health"},
		},
		{
			name: "a bound of processes where there was none",
			edit: func(s *site.Site) { s.Nodes[1].Limits.Pids = site.DefaultPids },
			want: []string{"node receptor1: update: pids changed", "node receptor1: check: check health"},
		},
		{
			name: "another pin", edit: func(s *site.Site) { s.Nodes[1].Limits.Pin = "0" },
			want: []string{"node receptor1: update: pin changed", "node receptor1: check: check health"},
		},
		{
			name: "volume", edit: func(s *site.Site) { s.Volumes = []site.Volume{{Name: "pgdata", Path: "/srv/pg"}} },
			want: []string{
				"node db: stop: volumes changed", "node db: update: volumes changed", "node db: start: after the change",
				"node db: configure: db: volume pgdata changed", "node db: check: check health",
			},
		},
		{
			name: "privileges", edit: func(s *site.Site) { s.Nodes[3].Privileged = true },
			want: []string{
				"node portal: stop: privileges changed", "node portal: update: privileges changed",
				"node portal: start: after the change",
				"node portal: check: check health",
			},
		},
		{
			name: "system calls", edit: func(s *site.Site) { s.Nodes[3].Syscalls = []string{site.IOUring} },
			want: []string{
				"node portal: stop: allowed system calls changed",
				"node portal: update: allowed system calls changed",
				"node portal: start: after the change", "node portal: check: check health",
			},
		},
		{
			name: "virtual hardware", edit: func(s *site.Site) { s.Nodes[3].VM.CPU = "qemu64" },
			want: []string{
				"node portal: stop: virtual hardware changed", "node portal: update: virtual hardware changed",
				"node portal: start: after the change",
				"node portal: check: check health",
			},
		},
		{
			name: "a disk, with an engine that plugs none", edit: func(s *site.Site) {
				s.Nodes[3].VM.Disks = []site.Drive{{Name: "data", Disk: site.RawFile, Size: 1 << 30}}
			},
			want: []string{
				"node portal: stop: virtual hardware changed", "node portal: update: virtual hardware changed",
				"node portal: start: after the change",
				"node portal: check: check health",
			},
		},
		{
			name: "nat", edit: func(s *site.Site) { s.Networks[0].NAT = false },
			want: []string{"network cam: network: nat changed"},
		},
		{
			name: "id", edit: func(s *site.Site) { s.Nodes[3].ID = 200 },
			want: []string{
				"host sv1: names: names, addresses or roles changed",
				"node portal: destroy: id changed from 104 to 200", "node portal: create: new",
				"node portal: start: new", "node portal: configure: apply roles", "node portal: check: check health",
			},
		},
		{
			name: "one less", edit: func(s *site.Site) { s.Nodes = slices.Delete(s.Nodes, 2, 3) },
			want: []string{
				"node receptor2: destroy: no longer declared",
				"host sv1: names: names, addresses or roles changed",
				"node portal: configure: portal: file /etc/portal changed", "node portal: check: check health",
			},
		},
		{
			name: "image", edit: func(s *site.Site) {
				s.Images[0].Packages = []string{"vim"}
				s.Nodes = s.Nodes[3:]
				s.Roles[3].NeedsHealthy = nil
			},
			want: slices.Concat([]string{
				"node db: stop: no longer declared", "node db: destroy: no longer declared",
				"node receptor1: destroy: no longer declared",
				"node receptor2: destroy: no longer declared",
				"host sv1: names: names, addresses or roles changed",
			}, replacement("portal", "base image changed", true)),
			build: []string{"debian"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet("sv1")
			f.reach(t, observatory())
			s := observatory()
			c.edit(s)
			p := f.up(t, s, plan.Goal{})
			wantOrder(t, p, s)
			var built []string
			rest := &plan.Plan{}
			for _, step := range p.Steps {
				if step.Kind != plan.BuildLayer {
					rest.Steps = append(rest.Steps, step)
					continue
				}
				built = append(built, step.Subject)
				if want := "not in the store: " + step.Layer.Digest; step.Reason != want {
					t.Errorf("layer %s: %s", step.Subject, step.Reason)
				}
			}
			wantLines(t, rest, c.want...)
			if !slices.Equal(built, c.build) {
				t.Errorf("layers built: %q, want %q", built, c.build)
			}
			f.reach(t, s)
			f.wantReached(t, s)
		})
	}
}

func TestFirstUp(t *testing.T) {
	f := newFleet("sv1")
	p := f.up(t, observatory(), plan.Goal{})
	var got []string
	for _, s := range p.Steps {
		got = append(got, fmt.Sprintf("%s %s", s.Kind, s.Subject))
	}
	want := []string{
		"prepare sv1", "network cam", "names sv1", "build debian", "build debian + db", "create db", "start db",
		"configure db", "check db",
		"build debian + receptor", "create receptor1", "start receptor1", "configure receptor1", "check receptor1",
		"create receptor2", "start receptor2", "configure receptor2", "check receptor2",
		"create portal", "start portal", "configure portal", "check portal",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if counts := p.Counts(); counts[plan.CreateNode] != 4 || counts[plan.BuildLayer] != 3 {
		t.Errorf("counts: %v", counts)
	}
	if d := p.DisturbedNodes(); len(d) != 0 {
		t.Errorf("new nodes are disturbed: %q", d)
	}
}

func TestAfterKillReasons(t *testing.T) {
	f := newFleet("sv1")
	f.faults.Crash("Create", "db", 1)
	f.faults.Fail("Put", "receptor1", 1, nil)
	f.faults.Fail("Start", "receptor2", 1, nil)
	f.run(f.up(t, observatory(), plan.Goal{}), 4)
	f.faults.Revive()
	wantLines(t, f.up(t, observatory(), plan.Goal{}),
		"node db: destroy: incomplete", "node db: create: new", "node db: start: new",
		"node db: configure: apply roles",
		"node db: check: check health",
		"node receptor1: configure: not finished earlier", "node receptor1: check: check health",
		"node receptor2: start: not running", "node receptor2: configure: not finished earlier",
		"node receptor2: check: check health",
		"node portal: configure: not finished earlier", "node portal: check: check health")
}
