package control_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control/nodes"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

const twoHosts = `
[site]
name = "toykat"

[host.sv1]
address = "local"
[host.sv2]
address = "ops@10.8.1.2:2222"

[network.lan]
subnet  = "10.99.1.0/24"
gateway = "10.99.1.1"
[network.far]
subnet  = "10.99.2.0/24"
gateway = "10.99.2.1"

[image.debian]
suite = "bookworm"

[node.db]
id    = 11
roles = ["db"]
host  = "sv1"
net.lan = "auto"

[node."web{1..2}"]
id    = 21
roles = ["web"]
host  = "sv2"
net.far = "auto"
`

// farDesk returns a site on this machine and on another one, which is reached by the protocol of
// helpers.
func farDesk(t *testing.T) (d *desk, other *machine) {
	t.Helper()
	d, other = newDesk(t), newMachine(t)
	d.machine.others = map[string]*machine{"sv2": other}
	d.machine.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.1/24", Link: "eth0", MTU: 1500}}
	other.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.2/24", Link: "eth0", MTU: 1500}}
	d.write("site.toml", twoHosts)
	return d, other
}

// TestEncrypted: each host of an encrypted network has its own key pair, which stays the same, and
// only root can read the private key. A host that cannot encrypt is reported before anything is
// done.
func TestEncrypted(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", strings.Replace(strings.Replace(twoHosts, "net.far", "net.lan", 1), `gateway = "10.99.1.1"`,
		"gateway = \"10.99.1.1\"\nencrypt = true", 1))
	other.of("toykat").Encrypts = problem.New(problem.Unable, "the kernel of this host has no WireGuard")
	if _, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); !problem.Is(err, problem.Unable) ||
		!strings.Contains(err.Error(), "no WireGuard") {
		t.Errorf("a host that cannot encrypt: %v", err)
	}
	if all := d.Connector(d.site()).Check(t.Context()); !all[0].IsFit() || all[1].IsFit() || len(all[1].Wrong) != 1 ||
		!strings.Contains(all[1].Wrong[0], "no WireGuard") {
		t.Errorf("the hosts are %+v", all)
	}
	other.of("toykat").Encrypts = nil
	if all := d.Connector(d.site()).Check(t.Context()); !all[0].IsFit() || !all[1].IsFit() {
		t.Errorf("the hosts are %+v", all)
	}
	d.up()
	keys := map[string]bool{}
	for _, m := range []*machine{d.machine, other} {
		path := filepath.Join(m.dirs.Keys("toykat"), ".wireguard")
		info, err := os.Stat(path)
		d.must(err)
		private, err := os.ReadFile(path)
		d.must(err)
		keys[string(private)] = true
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the key has the mode %v", info.Mode())
		}
		networks, err := m.of("toykat").Networks().Observe("toykat")
		d.must(err)
		for _, n := range networks {
			if n.Name == "lan" && (n.VXLAN.Key == "" ||
				strings.Contains(n.VXLAN.Peers+n.VXLAN.Key, strings.TrimSpace(string(private)))) {
				t.Errorf("the network is %+v", n)
			}
		}
	}
	if len(keys) != 2 {
		t.Error("two hosts have the same key")
	}
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	if !p.Empty() {
		t.Errorf("a second plan has %d steps", len(p.Steps))
	}
}

// TestFarHost: a site on two hosts comes up, is shown, is worked with and goes down, and each host
// has only its own part.
func TestFarHost(t *testing.T) {
	d, other := farDesk(t)
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	if n := len(p.Steps); n < 10 {
		t.Errorf("%d steps are planned", n)
	}
	d.up()
	_, err = nodes.ConsoleOf(t.Context(), d.Session, d.site(), "web1")
	d.wantExit(err, problem.Unable, "sv2")
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
	status, err := status.Read(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	for _, n := range status.Nodes {
		if want := map[string]string{"db": "sv1", "web1": "sv2", "web2": "sv2"}[n.Node]; n.Host != want {
			t.Errorf("node %s is on %s, not %s", n.Node, n.Host, want)
		}
	}
	for name, m := range map[string]*machine{"db": d.machine, "web1 web2": other} {
		nodes, err := m.of("toykat").List(t.Context(), "toykat")
		d.must(err)
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		if slices.Sort(names); strings.Join(names, " ") != name {
			t.Errorf("a host has the nodes %v, not %s", names, name)
		}
		if entries, err := os.ReadFile(m.dirs.Journal("toykat")); err != nil ||
			strings.Count(string(entries), `"begin"`) != 1 || strings.Contains(string(entries), "node web1") != (m == other) {
			t.Errorf("the journal of the host of %s has %s (%v)", name, entries, err)
		}
		known, err := os.ReadFile(m.dirs.Keys("toykat") + "/known_hosts")
		d.must(err)
		if got := strings.Count(string(known), "\n"); got != len(names) {
			t.Errorf("the host of %s has SSH host keys of %d nodes", name, got)
		}
	}
	if p, err = sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err != nil || !p.Empty() {
		t.Errorf("a second plan has %d steps: %v", len(p.Steps), err)
	}
	runners, err := way.Runners(t.Context(), d.Session, d.site())
	d.must(err)
	for _, name := range []string{"db", "web1", "web2"} {
		d.must(runners[name].Run(t.Context(), host.Command{Args: []string{"ask"}}))
	}
	d.must(status.Probe(t.Context()))
	if _, err = sites.Stop(t.Context(), d.Session, d.site(), []string{"web1"}); err != nil {
		t.Fatal(err)
	}
	if got := d.nodes(); !strings.Contains(got, "web1 none stopped") {
		t.Errorf("the nodes are %s", got)
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.wantNodes("db none absent -, web1 none absent -, web2 none absent -")
}

// TestNetworkOverHosts: nodes of two hosts are on one network, and each host has the other's nodes
// in its tables. Routed networks do not span hosts.
func TestNetworkOverHosts(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", strings.ReplaceAll(twoHosts, "net.far", "net.lan"))
	d.up()
	if p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err != nil || !p.Empty() {
		t.Errorf("a second plan has %d steps: %v", len(p.Steps), err)
	}
	for m, want := range map[*machine]string{d.machine: "10.8.1.2 2", other: "10.8.1.1 1"} {
		networks, err := m.of("toykat").Networks().Observe("toykat")
		d.must(err)
		for _, n := range networks {
			peers, err := n.VXLAN.ParsePeers()
			d.must(err)
			if len(peers) != 1 || fmt.Sprint(peers[0].Address, " ", len(peers[0].MACs)) != want || n.MTU != 1450 {
				t.Errorf("a host has %+v, not %s", n, want)
			}
		}
		if len(networks) != 1 {
			t.Errorf("a host has the networks %v", networks)
		}
	}
	d.write("site.toml", strings.Replace(strings.ReplaceAll(twoHosts, "net.far", "net.lan"), "[network.lan]",
		"[network.lan]\nkind = \"routed\"", 1))
	_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	if err == nil || !strings.Contains(err.Error(), "routed network lan are, or would be, on hosts sv1 and sv2") {
		t.Errorf("a routed network over hosts: %v", err)
	}
}

// TestSilentHost: a host that does not answer is unknown, and not empty. Nothing is planned without
// it unless it is left out. Then no node is created that may be on it.
func TestSilentHost(t *testing.T) {
	d, other := farDesk(t)
	d.up()
	d.Links.Close()
	d.machine.others = nil
	wants := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "sv2") || !strings.Contains(err.Error(), "--without sv2") {
			t.Errorf("a host is silent: %v", err)
		}
	}
	_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	wants(err)
	_, _, err = sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	wants(err)
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	wants(err)
	status, err := status.Read(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	wants(status.Silent)
	if got := d.nodes(); got != "db none running healthy, web1 none unknown -, web2 none unknown -" {
		t.Errorf("the nodes are %s", got)
	}

	d.Without = []string{"sv2"}
	// A node of the missing host is declared on another host now, and a new node is added.
	d.write("site.toml", strings.Replace(twoHosts, `host  = "sv2"`, `host  = "sv1"`, 1)+
		"[node.new]\nid = 31\nroles = [\"web\"]\nhost = \"sv1\"\nnet.lan = \"auto\"\n")
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	for _, s := range p.Steps {
		if s.ForNode() && s.Subject != "db" || s.Host != "sv1" {
			t.Errorf("a step is planned: %v", s)
		}
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "new, web1 and web2") &&
		!strings.Contains(p.Warnings[0], "web1, web2") {
		t.Errorf("the warnings are %q", p.Warnings)
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	if !d.marked("toykat") {
		t.Error("the site is taken for down, though a host was left out")
	}
	nodes, err := other.of("toykat").List(t.Context(), "toykat")
	if err != nil || len(nodes) != 2 {
		t.Errorf("the host that was left out has %d nodes: %v", len(nodes), err)
	}

	d.Without = nil
	d.machine.others = map[string]*machine{"sv2": other}
	d.write("site.toml", twoHosts)
	d.up()
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
}

// marked reports whether a site counts as up.
func (d *desk) marked(key string) bool {
	_, up := d.Register().Up(key)
	return up
}

// TestLostHost: if the connection to a host ends during a run, that is reported, and the steps of
// other hosts continue. When the lock on the lost host is free, the next run continues from the
// current state.
func TestLostHost(t *testing.T) {
	d, _ := farDesk(t)
	begun := make(chan bool, 100)
	d.machine.others["sv2"].slow = func() {
		select {
		case begun <- true:
			d.Links.Close()
		default:
		}
	}
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	if err == nil || !strings.Contains(d.watch.text(), "host sv2: the connection has ended") {
		t.Errorf("the run ended with %v\ntold: %s", err, d.watch.text())
	}
	d.machine.others["sv2"].slow = nil
	d.WaitForLocks = true // the helper may still hold the lock
	d.up()
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
}

// TestFarHistory: the journals of all hosts are read, and each entry names its host. Missing
// journals of a host that does not answer are reported.
func TestFarHistory(t *testing.T) {
	d, _ := farDesk(t)
	d.Command = "orrery up"
	d.up()
	h, err := nodes.ReadHistory(t.Context(), d.Session, d.site(), 1)
	d.must(err)
	if h.Silent != nil || len(h.Damaged) > 0 || len(h.Entries) < 10 {
		t.Errorf("the history has %d entries: %v", len(h.Entries), h.Silent)
	}
	for i, e := range h.Entries {
		want := "sv1"
		switch {
		case e.Kind != "step":
			want = "sv1 sv2"
		case strings.Contains(e.Step, "web") || len(e.Hosts) > 0 && e.Hosts[0] == "sv2":
			want = "sv2"
		}
		if got := strings.Join(e.Hosts, " "); got != want || i > 0 && e.Time.Before(h.Entries[i-1].Time) {
			t.Errorf("entry %d is of %s, not %s: %+v", i, got, want, e)
		}
	}
	d.Links.Close()
	d.machine.others = nil
	h, err = nodes.ReadHistory(t.Context(), d.Session, d.site(), 0)
	d.must(err)
	if h.Silent == nil || !strings.Contains(h.Silent.Error(), "--without sv2") || len(h.Entries) < 3 ||
		strings.Join(h.Entries[0].Hosts, " ") != "sv1" {
		t.Errorf("with a silent host, the history is %+v", h)
	}
	d.Without = []string{"sv2"}
	if h, err = nodes.ReadHistory(t.Context(), d.Session, d.site(), 0); err != nil || h.Silent != nil ||
		len(h.Entries) < 3 || !strings.Contains(d.watch.text(), "host sv2 is left out") {
		t.Errorf("without a host, the history is %+v: %v\n%s", h, err, d.watch.text())
	}
}

// TestFarLogs: the output of roles on another host is read there. A node on a host that is left out
// is not reported as down.
func TestFarLogs(t *testing.T) {
	d, other := farDesk(t)
	d.up()
	d.must(os.MkdirAll(other.dirs.Logs("toykat"), 0o755))
	d.must(os.WriteFile(other.dirs.Logs("toykat")+"/web1.log", []byte("installed\n"), 0o600))
	var out strings.Builder
	absent, err := nodes.PrintNodeLogs(t.Context(), d.Session, d.site(), "web1", nodes.LogOptions{Lines: 7}, &out, &out)
	d.must(errors.Join(err, absent))
	if text := out.String(); !strings.Contains(text, "==> node web1\ninstalled\n==> journal of node web1") {
		t.Errorf("it prints %s", text)
	}
	d.Without = []string{"sv2"}
	absent, err = nodes.PrintNodeLogs(t.Context(), d.Session, d.site(), "web1", nodes.LogOptions{}, &out, &out)
	if err != nil || absent == nil || !strings.Contains(absent.Error(), "or is on sv2") {
		t.Errorf("of a node on a host that was left out: %v, %v", absent, err)
	}
}

// TestFarRefused: features that do not work with other hosts yet are refused before anything is
// done.
//
// Promise (Other hosts): Two addresses of one machine are not treated as two hosts.
func TestFarRefused(t *testing.T) {
	d, other := farDesk(t)
	refused := func(what string, err error, words ...string) {
		t.Helper()
		if !problem.Is(err, problem.Unable) {
			t.Errorf("%s: %v", what, err)
		}
		for _, w := range words {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", what, w, err)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "roles/web/role.toml"))
	d.must(err)
	d.write("roles/web/role.toml", "[[volume]]\nname = \"archive\"\npath = \"/srv/archive\"\n"+string(text))
	for what, c := range map[string]struct{ volume, word string }{
		"shared on two hosts": {"shared = true",
			"db and web1 share volume archive, but are, or would be, on hosts sv1 and sv2"},
	} {
		d.write("site.toml", strings.Replace(twoHosts, "[network.far]", "[volume.archive]\n"+c.volume+"\n[network.far]", 1))
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		refused(what, err, c.word)
		_, err = sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
		refused(what, err, c.word)
	}
	// If they may be on any host, they are placed on the same one.
	d.write("site.toml", strings.NewReplacer("[network.far]", "[volume.archive]\nshared = true\n[network.far]",
		"host  = \"sv1\"\n", "", "host  = \"sv2\"\n", "").Replace(twoHosts))
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	if p.Homes["db"] != p.Homes["web1"] || p.Homes["db"] != p.Homes["web2"] || p.Homes["db"] == "" {
		t.Errorf("nodes that share a volume would be on %v", p.Homes)
	}
	d.write("site.toml", twoHosts)
	d.Links.Close()
	other.dirs = d.machine.dirs
	_, err = sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	if !problem.Is(err, problem.Mistake) || !strings.Contains(err.Error(), "hosts sv1 and sv2 are the same machine") {
		t.Errorf("two names for one machine: %v", err)
	}
}

// TestAnotherControlPoint: every control host finds the same state. If two run at the same time,
// one of them reports the other.
func TestAnotherControlPoint(t *testing.T) {
	d, other := farDesk(t)
	d.up()
	elsewhere := newDesk(t)
	elsewhere.machine.others = map[string]*machine{"sv1": d.machine, "sv2": other}
	elsewhere.write("site.toml", strings.Replace(twoHosts, `address = "local"`, `address = "10.8.1.1"`, 1))
	elsewhere.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
	p, err := sites.Preview(t.Context(), elsewhere.Session, nil, sites.PreviewOptions{})
	if err != nil || !p.Empty() {
		t.Errorf("a plan from elsewhere has %d steps: %v", len(p.Steps), err)
	}
	f, err := d.Hosts(t.Context(), d.site())
	d.must(err)
	letGo, err := d.LockSite(t.Context(), d.site(), f)
	d.must(err)
	_, err = sites.Down(t.Context(), elsewhere.Session, elsewhere.site(), nil, false)
	if !problem.Is(err, problem.Locked) {
		t.Errorf("two at once: %v", err)
	}
	letGo()
	_, err = sites.Down(t.Context(), elsewhere.Session, elsewhere.site(), nil, false)
	d.must(err)
	d.wantNodes("db none absent -, web1 none absent -, web2 none absent -")
	if _, err := os.Stat(elsewhere.dirs.Site("toykat")); err == nil {
		t.Error("where the site is only steered from, something is kept of it")
	}
}

// TestHostStates: for each host, the state says whether it answers, what it has of the site, and
// what nodes would lack there.
func TestHostStates(t *testing.T) {
	d, other := farDesk(t)
	d.up()
	site := d.site()
	call := d.Connector(site)
	all := call.Check(t.Context())
	if len(all) != 2 || !all[0].IsFit() || !all[1].IsFit() || all[0].Nodes != 1 || all[1].Nodes != 2 ||
		all[1].Running != 2 || all[1].Seconds <= 0 {
		t.Errorf("the hosts are %+v", all)
	}
	other.facts = doctor.Facts{{Name: "overlay", Level: doctor.Required}, {Name: "kvm", Level: doctor.Recommended}}
	if all = call.Check(t.Context()); all[1].IsFit() || len(all[1].Lacks) != 1 || all[1].Lacks[0].Name != "overlay" {
		t.Errorf("a host that lacks something is %+v", all[1])
	}
	if all = call.States(t.Context()); !all[1].IsFit() {
		t.Errorf("nobody asked whether it is fit: %+v", all[1])
	}
	if facts, err := call.Facts(t.Context(), "sv2"); err != nil || len(facts) != 2 {
		t.Errorf("the facts are %v: %v", facts, err)
	}
	d.write("site.toml", strings.Replace(twoHosts, "net.far", "net.lan", 1))
	d.machine.arrives, call.Site = 1400, d.site()
	if all = call.Check(t.Context()); all[0].IsFit() || len(all[0].Wrong) != 1 ||
		!strings.Contains(all[0].Wrong[0], "packets larger than 1400 bytes do not arrive at host sv2 (10.8.1.2)") {
		t.Errorf("between hosts are small packets only: %+v", all[0])
	}
	d.machine.arrives = -1
	if all = call.Check(t.Context()); all[0].IsFit() || !strings.Contains(all[0].Wrong[0], "sv2 does not answer a ping") {
		t.Errorf("between hosts is nothing: %+v", all[0])
	}
	d.machine.arrives, call.Site = 0, site
	if _, err := call.Facts(t.Context(), "sv3"); !problem.Is(err, problem.Usage) {
		t.Errorf("a host that is not there: %v", err)
	}
	d.Links.Close()
	d.machine.others = nil
	if all = call.Check(t.Context()); all[1].IsFit() || all[1].Answers || len(all[1].Wrong) != 1 ||
		!strings.Contains(all[1].Wrong[0], "nobody answers") || !all[0].IsFit() {
		t.Errorf("a host that does not answer is %+v", all[1])
	}
	d.machine.others = map[string]*machine{"sv2": other}
	other.dirs = d.machine.dirs
	if all = call.Check(t.Context()); all[1].IsFit() ||
		!strings.Contains(all[1].Wrong[0], "the same machine as host sv1") {
		t.Errorf("two names for one machine: %+v", all[1])
	}
}
