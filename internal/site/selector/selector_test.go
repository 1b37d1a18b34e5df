package selector

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/test/need"
)

func example() *site.Site {
	nic := func(networks ...string) []site.NIC {
		var nics []site.NIC
		for _, name := range networks {
			nics = append(nics, site.NIC{Network: name, Address: netip.MustParseAddr("10.0.0.1")})
		}
		return nics
	}
	s := &site.Site{
		Name: "karoo", Production: true,
		Roles: []site.Role{
			{Name: "python"}, {Name: "katcp", NeedsRoles: []string{"python"}}, {Name: "portal", NeedsRoles: []string{"katcp"}},
			{Name: "receptor", NeedsRoles: []string{"katcp", "receptor"}}, {Name: "db"}, {Name: "unused"},
		},
		Nodes: []site.Node{
			{Name: "portal", ID: 101, Roles: []string{"portal"}, Groups: []string{"system"}, Host: "sv1", Image: "debian",
				Engine: "lxc", NICs: nic("cam", "data")},
			{Name: "db", ID: 102, Roles: []string{"db"}, Groups: []string{"system"}, Image: "debian", Engine: "kvm",
				NICs: nic("data"), Privileged: true},
		},
	}
	for i := range 10 {
		s.Nodes = append(s.Nodes, site.Node{
			Name: fmt.Sprintf("receptor%02d", i), ID: 200 + i, Roles: []string{"receptor"},
			Groups: []string{"receptors", "system"},
			Host:   fmt.Sprintf("sv%d", i%2+1), Image: "ubuntu", Engine: "lxc", NICs: nic("cam"),
		})
	}
	return s
}

func namesOf(nodes []*site.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, strings.Replace(n.Name, "receptor", "r", 1))
	}
	return strings.Join(names, " ")
}

const everyone = "portal db r00 r01 r02 r03 r04 r05 r06 r07 r08 r09"

// TestSelectShipped: a star stands for the slash in the names of roles that ship with Orrery as well.
func TestSelectShipped(t *testing.T) {
	s := example()
	s.Roles = append(s.Roles, site.Role{Name: "orrery/nginx"})
	s.Nodes[0].Roles = append(s.Nodes[0].Roles, "orrery/nginx")
	for text, want := range map[string]string{
		"role=*": everyone, "role=orrery/*": "portal", "role=*nginx": "portal", "role=orrery?nginx": "portal",
		"role=orrery/nginx": "portal", "role=d*": "db", `role=orrery\/n[a-z]*`: "portal",
	} {
		nodes, err := Select(s, text)
		if got := namesOf(nodes); err != nil || got != want {
			t.Errorf("%s: got %s, want %s (%v)", text, got, want, err)
		}
	}
}

func TestSelect(t *testing.T) {
	s := example()
	for text, want := range map[string]string{
		"all":                  everyone,
		"portal":               "portal",
		"portal,db":            "portal db",
		"system":               everyone,
		"system,db":            everyone,
		"not receptors":        "portal db",
		"receptors and id=200": "r00",
		"db , portal":          "portal db",
		"receptor0[0-2]":       "r00 r01 r02",
		"receptor0?,db":        "db r00 r01 r02 r03 r04 r05 r06 r07 r08 r09",
		"name=receptor0[^0-7]": "r08 r09",
		"role=receptor and host=sv1 and not id=200..203": "r04 r06 r08",
		"role=python and not role=receptor":              "portal",
		"role=p*":                                        "portal r00 r01 r02 r03 r04 r05 r06 r07 r08 r09",
		"role=portal,db":                                 "portal db",
		"role!=receptor,db":                              "portal",
		"portal,role=db":                                 "portal db",
		"id=101,205":                                     "portal r05",
		"not host=*":                                     "db",
		"not not db":                                     "db",
		"group=system and not group=receptors":           "portal db",
		"network=data or id=209":                         "portal db r09",
		"not (network=data or id=200..209)":              "",
		"portal or db and id=200":                        "portal",
		"(portal or db) and id=102":                      "db",
		"engine=kvm":                                     "db",
		"image=ub* and id=209":                           "r09",
		"production=true":                                everyone,
		"production=false":                               "",
		"privileged=true":                                "db",
		"privileged!=true and portal":                    "portal",
		" ( all )\n":                                     everyone,
	} {
		nodes, err := Select(s, text)
		if err != nil || namesOf(nodes) != want {
			t.Errorf("%s: %q, not %q; %v", text, namesOf(nodes), want, err)
		}
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if namesOf(q.Select(s)) != want {
			t.Errorf("%s: Selector.Select gives %q", text, namesOf(q.Select(s)))
		}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if q.Match(s, n) != strings.Contains(" "+want+" ", " "+namesOf([]*site.Node{n})+" ") {
				t.Errorf("%s: Match of %s", text, n.Name)
			}
		}
	}
}

func TestSelectSeveral(t *testing.T) {
	s := example()
	for want, texts := range map[string][]string{everyone: nil, "portal db": {"db", "portal", "id=101"}} {
		if nodes, err := Select(s, texts...); err != nil || namesOf(nodes) != want {
			t.Errorf("%q: %q %v", texts, namesOf(nodes), err)
		}
	}
}

func TestMistakes(t *testing.T) {
	s := example()
	for text, want := range map[string]string{
		"":                 `selector "" at 1: it is empty (all selects every node)`,
		"portl":            `selector "portl" at 1: no node is called "portl" (did you mean "portal"?)`,
		"db or recepter*":  `selector "db or recepter*" at 7: no node is called "recepter*" (did you mean "receptor00"?)`,
		"role=recepter":    `selector "role=recepter" at 6: no node has role "recepter" (did you mean "receptor"?)`,
		"not role=xyzzy12": `selector "not role=xyzzy12" at 10: no node has role "xyzzy12" (known: db, katcp, portal, python, receptor)`,
		"unused":           `selector "unused" at 1: no node is called "unused" (orrery query all lists the nodes)`,
		"python":           `selector "python" at 1: no node is called "python" (role=python selects by role)`,
		"id=5":             `selector "id=5" at 4: no node has id "5" (orrery query all lists the nodes)`,
		"id=5..x":          `selector "id=5..x" at 4: "5..x" is not an id (write id=101 or id=200..231)`,
		"id=7..5":          `selector "id=7..5" at 4: "7..5" is not an id (write id=101 or id=200..231)`,
		"rle=db":           `selector "rle=db" at 1: nodes have no property "rle" (did you mean "role"? Known: name, role, group, host, image, network, engine, id, production, privileged)`,
		"production=yes":   `selector "production=yes" at 12: production must be true or false, not "yes"`,
		"(db":              `selector "(db" at 1: this parenthesis is never closed (add ")")`,
		"db)":              `selector "db)" at 3: ")" without "(" (remove it)`,
		"db portal":        `selector "db portal" at 4: and, or or "," is missing before "portal"`,
		"db && portal":     `selector "db && portal" at 4: "&&" is not an operator (write and)`,
		"db || portal":     `selector "db || portal" at 4: "||" is not an operator (write or)`,
		"role==db":         `selector "role==db" at 6: a second "=" (write property=value)`,
		"db and":           `selector "db and" at 7: something is missing at the end (add a name or property=value)`,
		"and db":           `selector "and db" at 1: a name or property=value belongs here, not "and"`,
		"db,":              `selector "db," at 4: something is missing at the end (add a name or property=value)`,
		"[a":               `selector "[a" at 1: "[a" is not a well-formed pattern (close the bracket: [a-c])`,
		"é or rol=x":       `selector "é or rol=x" at 6: nodes have no property "rol" (did you mean "role"? Known: name, role, group, host, image, network, engine, id, production, privileged)`,
	} {
		_, err := Select(s, text)
		if err == nil || err.Error() != want {
			t.Errorf("got:  %v\nwant: %s", err, want)
		}
		var p *problem.Problem
		if !errors.As(err, &p) || p.Kind != problem.Usage {
			t.Errorf("%s: %T", text, err)
		}
	}
	if _, err := Parse(strings.Repeat("(", 1e5)); err == nil {
		t.Error("a million parentheses")
	}
	if _, err := Parse(strings.Repeat("not ", 1e5) + "a"); err == nil {
		t.Error("a million nots")
	}
}

func TestSelectIsFast(t *testing.T) {
	need.Linear(t, 2_500, func(size int) func() {
		s := &site.Site{}
		for i := range 200 {
			s.Roles = append(s.Roles,
				site.Role{Name: fmt.Sprint("role", i), NeedsRoles: []string{fmt.Sprint("role", i/2)}})
		}
		for i := range size {
			s.Nodes = append(s.Nodes, site.Node{Name: fmt.Sprint("node", i), ID: i + 1,
				Roles: []string{fmt.Sprint("role", i%200)}})
		}
		return func() {
			nodes, err := Select(s, "role=role1 and not id=1..10", "node5*", "role=role7?")
			if err != nil || len(nodes) == 0 {
				t.Fatalf("%d nodes: %v", len(nodes), err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"role=receptor and not host=sv1", "(a,b or id=1..2) and name=x?[a-z]", "not not all",
		"a!=b", "=", "!=,", "\\", "[", "production=true"} {
		f.Add(text)
	}
	s := example()
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			return
		}
		selected := q.Select(s)
		for _, n := range selected {
			if !q.Match(s, n) {
				t.Errorf("%q selects %s but does not match it", text, n.Name)
			}
		}
		_ = q.Check(s)
		inverse, err := Parse("not (" + text + ")")
		if err == nil && len(selected)+len(inverse.Select(s)) != len(s.Nodes) {
			t.Errorf("%q and its inverse do not select all", text)
		}
	})
}
