package inventory

import (
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/twin"
)

var update = flag.Bool("update", false, "write the .want files anew")

func example() *site.Site {
	address := netip.MustParseAddr
	return &site.Site{
		Name: "karoo", Owner: "sdp", Production: true, Vars: map[string]any{"array": "KAT-7"},
		Hosts:  []site.Host{{Name: "sv1", Address: "local"}, {Name: "sv2", Address: "root@10.8.1.2"}},
		Groups: []site.Group{{Name: "system-a", Nodes: []string{"portal", "r1"}}, {Name: "none"}},
		Roles: []site.Role{{Name: "python"}, {Name: "portal", NeedsRoles: []string{"python"}},
			{Name: "receptor", NeedsRoles: []string{"python"}}},
		Nodes: []site.Node{
			{
				Name: "portal", ID: 101, Image: "debian", Engine: "lxc", Roles: []string{"portal"}, Groups: []string{"system-a"},
				Host: "sv1",
				NICs: []site.NIC{{Network: "cam", Address: address("10.8.67.11")},
					{Network: "data", Address: address("10.8.68.11")}},
				Vars: map[string]any{"dish": 13.5, "html": "<a>"},
			},
			{
				Name: "r1", ID: 201, Image: "debian", Engine: "lxc", Roles: []string{"receptor"}, Groups: []string{"system-a"},
				Host: "sv2",
				NICs: []site.NIC{{Network: "cam", Address: address("10.8.67.21")}},
			},
			{Name: "alone", ID: 202, Image: "debian", Engine: "kvm"},
		},
	}
}

func TestWords(t *testing.T) {
	s := example()
	ansible, err := json.MarshalIndent(Inventory(s), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	vars, err := json.MarshalIndent(HostVars(s, &s.Nodes[1]), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	made := toy(t)
	toyVars, err := json.MarshalIndent(HostVars(made, &made.Nodes[0]), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{
		"toy-hostvars.json": toyVars, "toy-inventory.json": JSON(made), "toy-ssh_config": SSHConfig(made, "/var/lib/keys"),
		"ansible.json": ansible, "hostvars.json": vars, "inventory.json": JSON(s),
		"ssh_config": SSHConfig(s, "/var/lib/my keys/100%"),
	} {
		path := "testdata/" + name
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: got:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

// toy is a twin of the example, at a release, with all on one node and one of them simulated.
func toy(t *testing.T) *site.Site {
	s := example()
	s.Roles = append(s.Roles, site.Role{Name: "receptor-sim"})
	s.Releases = []site.Release{{Number: 701}}
	s.Nodes[1].SimulatedBy = "receptor-sim"
	made, err := twin.New(s, twin.Options{Name: "toy", Release: 701, Collapse: true})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestSameAgain(t *testing.T) {
	first := string(JSON(example()))
	for range 20 {
		if string(JSON(example())) != first {
			t.Fatal("not the same")
		}
	}
}
