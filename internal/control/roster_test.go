package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/roster"
	"orrery/internal/host/doctor"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
)

// TestAddHost: a host is added to a site if it can be reached, has what nodes need, and has no
// conflicting records. It is removed when nothing is on it any more.
func TestAddHost(t *testing.T) {
	d, _ := farDesk(t)
	d.up()
	before := d.text()
	refused := func(what, name, address string, kind problem.Kind, says string) {
		t.Helper()
		if _, err := roster.Add(t.Context(), d.Session, name, address); problem.ExitCode(err) != int(kind) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
		if got := d.text(); got != before {
			t.Errorf("%s: the site file is now\n%s", what, got)
		}
	}
	refused("nobody is there", "sv3", "10.8.1.3", problem.Failed, "host sv3: nobody answers")
	refused("another address", "sv2", "10.8.1.3", problem.Mistake, "host sv2 is at ops@10.8.1.2:2222")
	refused("an address that is taken", "sv3", "ops@10.8.1.2:2222", problem.Mistake, "already used by host sv2")
	refused("no address", "sv3", "-oProxyCommand=x", problem.Mistake, "is not that of a host")
	third := newMachine(t)
	d.machine.others["sv3"] = d.machine.others["sv2"]
	refused("the same machine", "sv3", "10.8.1.3", problem.Mistake, "sv2 and sv3 are the same machine")
	third.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.3/24", Link: "eth0", MTU: 1500}}
	d.machine.others["sv3"] = third
	third.facts = doctor.Facts{{Name: "lxc", Level: doctor.Required, Value: "not installed"}}

	third.of("toykat").Addresses[0].MTU = 576 // less than a network between hosts needs
	refused("a wire that takes too little", "sv3", "root@10.8.1.3", problem.Unable, "host sv3 cannot run nodes")
	third.of("toykat").Addresses[0].MTU = 1500
	third.facts = doctor.Facts{{Name: "lxc", Level: doctor.Required, Value: "not installed"}}

	added, err := roster.Add(t.Context(), d.Session, "sv3", "root@10.8.1.3")
	d.must(err)
	if want := strings.Replace(before, "2:2222\"\n", "2:2222\"\n\n[host.sv3]\naddress = \"root@10.8.1.3\"\n",
		1); !added.Written || d.text() != want || strings.Join(added.Installed, " ") != "lxc" {
		t.Errorf("added is %+v; the site file is\n%s", added, d.text())
	}
	if again, err := roster.Add(t.Context(), d.Session, "sv3", "root@10.8.1.3"); err != nil || !again.Written ||
		again.Block != "" || len(again.Installed) > 0 {
		t.Errorf("again: %+v, %v", again, err)
	}

	// It is removed again. Hosts that still have something are refused.
	after := d.text()
	for name, says := range map[string]string{"sv1": "named by 1 node: db", "sv2": "named by 2 nodes: web1, web2",
		"sv9": "no host is called"} {
		if _, err := roster.Remove(t.Context(), d.Session, name); err == nil || !strings.Contains(err.Error(), says) ||
			d.text() != after {
			t.Errorf("%s is removed: %v", name, err)
		}
	}
	volume := filepath.Join(third.dirs.Volumes("toykat"), "web1", "rows")
	d.must(os.MkdirAll(volume, 0o755))
	if _, err := roster.Remove(t.Context(), d.Session, "sv3"); problem.ExitCode(err) != int(problem.Refused) ||
		!strings.Contains(err.Error(), "rows") {
		t.Errorf("a host with a volume: %v", err)
	}
	d.must(os.RemoveAll(third.dirs.Volumes("toykat")))
	delete(d.machine.others, "sv3")
	d.Links.Close()
	if _, err := roster.Remove(t.Context(), d.Session, "sv3"); problem.ExitCode(err) != int(problem.Failed) ||
		d.text() != after {
		t.Errorf("a host that does not answer: %v", err)
	}
	d.machine.others["sv3"] = third
	removed, err := roster.Remove(t.Context(), d.Session, "sv3")
	d.must(err)
	if _, err := os.Stat(third.dirs.Site("toykat")); !removed.Written || d.text() != before || !os.IsNotExist(err) {
		t.Errorf("removed is %+v (%v); the site file is\n%s", removed, err, d.text())
	}
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
}

// TestAddHostWithNodes: a machine with nodes of another site of the same name is not added, because
// its nodes would count as the site's own.
func TestAddHostWithNodes(t *testing.T) {
	other, _ := farDesk(t)
	other.up()
	d, _ := farDesk(t)
	d.machine.others["sv3"] = other.machine
	if _, err := roster.Add(t.Context(), d.Session, "sv3", "10.8.1.3"); problem.ExitCode(err) != int(problem.Surprise) ||
		!strings.Contains(err.Error(), "already has nodes of a site called toykat: db") {
		t.Errorf("a host with nodes: %v", err)
	}
}

// TestDrainHost: nodes are kept away from a drained host, from every control host, until it is
// undrained.
func TestDrainHost(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", strings.ReplaceAll(strings.Replace(twoHosts, "[node.db]",
		"[group.web]\nnodes = [\"web*\"]\nspread = \"host\"\n[node.db]", 1), "host  = \"sv2\"\nnet.far", "net.far"))
	drain := func(host string, stay bool) (*roster.Moved, error) {
		return roster.Drain{Host: host, Stay: stay, Show: func(place.Moves, *plan.Plan) {}}.Run(t.Context(), d.Session,
			d.site())
	}
	for range 2 {
		if m, err := drain("sv2", false); err != nil || len(m.Moves.Moves)+len(m.Stuck) > 0 {
			t.Errorf("of a host without nodes, %+v leave (%v)", m, err)
		}
	}
	d.up()
	if nodes, err := other.of("toykat").List(t.Context(), "toykat"); err != nil || len(nodes) > 0 {
		t.Errorf("on the drained host are %v (%v)", nodes, err)
	}
	if states := d.Connector(d.site()).States(t.Context()); states[1].Drained == "" || states[0].Drained != "" {
		t.Errorf("the hosts are %+v", states)
	}
	for i, want := range []bool{true, false} {
		if got, err := roster.Undrain(t.Context(), d.Session, d.site(), "sv2"); err != nil || got != want {
			t.Errorf("undrained for the %d. time: %t, %v", i+1, got, err)
		}
	}
	moves, err := roster.ProposeMoves(t.Context(), d.Session, d.site())
	if d.must(err); len(moves.Moves) != 1 || moves.Moves[0].To != "sv2" ||
		!strings.Contains(moves.Moves[0].Why, "group web has 2 nodes on sv1") {
		t.Errorf("proposed is %+v", moves)
	}

	// Nothing is done unless the caller agrees to the plan.
	for _, m := range []*machine{d.machine, other} {
		m.of("toykat").Can.Move = true
	}
	d.Confirmer = never{}
	shown := 0
	show := func(m place.Moves, p *plan.Plan) { shown += len(m.Moves) * len(p.DisturbedNodes()) }
	if _, err := roster.Rebalance(t.Context(), d.Session, d.site(), show); problem.ExitCode(err) != int(problem.Refused) ||
		shown != 1 {
		t.Errorf("without consent: %v; shown was %d", err, shown)
	}
	if _, err := drain("sv1", false); problem.ExitCode(err) != int(problem.Refused) {
		t.Errorf("without consent: %v", err)
	}
	if states := d.Connector(d.site()).States(t.Context()); states[0].Drained != "" {
		t.Error("the mark was put there without consent")
	}
	m, err := drain("sv1", true)
	if d.must(err); len(m.Moves.Moves) != 2 || len(m.Stuck) != 1 ||
		!strings.Contains(m.Stuck[0].Cure, `remove host = "sv1"`) || len(m.Moved) > 0 {
		t.Errorf("leaving are %+v", m)
	}
	if states := d.Connector(d.site()).States(t.Context()); states[0].Drained == "" {
		t.Error("the mark is not there")
	}
	if _, err := drain("sv9", false); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("a host that is not there: %v", err)
	}
	delete(d.machine.others, "sv2")
	d.Links.Close()
	if _, err := drain("sv2", true); problem.ExitCode(err) != int(problem.Failed) {
		t.Errorf("a host that does not answer: %v", err)
	}
}

// never agrees to nothing.
type never struct{}

func (never) Ask(control.Question) (bool, error) {
	return false, problem.New(problem.Refused, "not confirmed")
}

// text returns the site file.
func (d *desk) text() string {
	d.Helper()
	text, err := os.ReadFile(filepath.Join(d.SiteDir, "site.toml"))
	d.must(err)
	return string(text)
}

// TestPerHostNodes: a node that each host has is made on a host that joins, does not keep the host from being
// drained or removed, and goes with it.
func TestPerHostNodes(t *testing.T) {
	d, _ := farDesk(t)
	d.write("site.toml", strings.ReplaceAll(twoHosts, "[node.db]", "[node.infra]\nid = 31\nper = \"host\"\n"+
		"net.lan = \"auto\"\n\n[node.db]"))
	d.up()
	third := newMachine(t)
	third.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.3/24", Link: "eth0", MTU: 1500}}
	d.machine.others["sv3"] = third
	before := d.text()
	if _, err := roster.Add(t.Context(), d.Session, "sv3", "root@10.8.1.3"); err != nil {
		t.Fatal(err)
	}
	d.up()
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy, " +
		"infra-sv1 none running -, infra-sv2 none running -, infra-sv3 none running -")
	drained, err := roster.Drain{Host: "sv3", Show: func(place.Moves, *plan.Plan) {}}.Run(t.Context(), d.Session, d.site())
	if err != nil || len(drained.Stuck)+len(drained.Moves.Moves) > 0 {
		t.Errorf("drained: %+v, %v", drained, err)
	}
	removed, err := roster.Remove(t.Context(), d.Session, "sv3")
	d.must(err)
	if nodes, err := third.of("toykat").List(t.Context(), "toykat"); err != nil || len(nodes) > 0 || !removed.Written {
		t.Errorf("on the removed host are %v (%v); removed is %+v", nodes, err, removed)
	}
	if d.text() != before {
		t.Errorf("the site file is\n%s", d.text())
	}
}
