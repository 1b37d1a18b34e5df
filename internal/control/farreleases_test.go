package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// elsewhere is another control point of what is on a desk's machine and on others: it has nothing but a site directory.
func (d *desk) elsewhere(text string, others map[string]*machine) *desk {
	d.Helper()
	e := newDesk(d.T)
	e.machine.others = others
	e.write("site.toml", text)
	return e
}

const (
	fromElsewhere = toykat + "[host.sv1]\naddress = \"10.8.1.1\"\n"
	secondHost    = "[host.sv2]\naddress = \"10.8.1.2\"\n"
)

// TestFarReleases: which releases are live is on the hosts, with what they were staged from: another control point finds it there, and a host that joins the site gets it, too.
func TestFarReleases(t *testing.T) {
	d, other := newDesk(t), newMachine(t)
	d.write("site.toml", strings.Replace(fromElsewhere, "10.8.1.1", "local", 1))
	d.up()
	d.write("roles/web/role.toml", "[[health]]\ncommand = [\"ask\", \"newer\"]\n")
	d.stage(700)
	d.turnTo(700)
	hosts := map[string]*machine{"sv1": d.machine}
	e := d.elsewhere(fromElsewhere, hosts)
	e.wantNodes("db 700 running healthy, db* none running retired, web1 700 running healthy, web1* none running healthy, web2 700 running healthy, web2* none running healthy")
	p, err := e.Preview(t.Context(), nil, control.PreviewOptions{})
	if err != nil || !p.Empty() {
		t.Fatalf("a plan from elsewhere: %v\n%v\ntold: %s", err, p, e.watch.text())
	}
	if _, err := os.Stat(e.dirs.Site("toykat")); err == nil {
		t.Error("where the site is only steered from, something is kept of it")
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "orrery-release-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind is %v", left)
	}

	hosts["sv2"] = other
	withSecond := strings.ReplaceAll(fromElsewhere, "roles  =", "host = \"sv1\"\nroles  =") + secondHost
	e.write("site.toml", withSecond)
	// Nothing is to be done but to let the second host know.
	if _, _, err = e.Up(t.Context(), e.site(), nil, control.UpOptions{}); err != nil || !strings.Contains(e.watch.text(), "host sv2 did not know which releases are live") {
		t.Fatalf("the second host: %v\ntold: %s", err, e.watch.text())
	}
	on := func(name string) *apply.Steered {
		t.Helper()
		f, err := e.Hosts(t.Context(), e.site())
		e.must(err)
		h, _ := f.Host(name)
		return h
	}
	read := func(name string) observe.Releases {
		t.Helper()
		r, err := on(name).ReadReleases()
		e.must(err)
		return r
	}
	if one, two := read("sv1"), read("sv2"); one.State() != two.State() || two.Active["web1"] != 700 || len(two.Staged) != 1 || two.Former["web1"] != one.Former["web1"] {
		t.Errorf("on record are %+v and %+v", one, two)
	}
	kept, err := os.ReadFile(filepath.Join(other.dirs.Release("toykat", 700), "site/roles/web/role.toml"))
	if err != nil || !strings.Contains(string(kept), "newer") {
		t.Errorf("the second host keeps %s: %v", kept, err)
	}

	// What one host has missed it gets, and nobody is asked.
	newer := read("sv1")
	newer.Confirmed = append(newer.Confirmed, 700)
	e.must(on("sv1").WriteReleases(newer))
	_, _, err = e.Up(t.Context(), e.site(), nil, control.UpOptions{})
	e.must(err)
	if one, two := read("sv1"), read("sv2"); one.State() != two.State() || len(two.Confirmed) != len(newer.Confirmed) {
		t.Errorf("on record are %+v and %+v", one, two)
	}

	// Two that were steered apart disagree, and nobody guesses.
	e.must(on("sv1").WriteReleases(newer))
	newer.Active = map[string]int{"web1": 701}
	e.must(on("sv2").WriteReleases(newer))
	_, _, err = e.Up(t.Context(), e.site(), nil, control.UpOptions{})
	e.wantExit(err, problem.Surprise, "hosts sv1 and sv2 disagree", "--without")
	e.Without = []string{"sv2"}
	_, _, err = e.Up(t.Context(), e.site(), nil, control.UpOptions{})
	e.must(err)
	e.Without = nil
	e.must(os.Remove(filepath.Join(other.dirs.Site("toykat"), "releases.json")))
	_, _, err = e.Up(t.Context(), e.site(), nil, control.UpOptions{})
	e.must(err)
	if two := read("sv2"); two.Active["web1"] != 700 {
		t.Errorf("on record is %+v", two)
	}

	// Nor does anybody choose between two copies of what a release was staged from.
	e.must(os.WriteFile(filepath.Join(other.dirs.Release("toykat", 700), "site/roles/web/role.toml"), []byte("# another\n"), 0o600))
	_, err = e.Preview(t.Context(), nil, control.PreviewOptions{})
	e.wantExit(err, problem.Surprise, "hosts sv1 and sv2 keep different copies", "release 700")
}
