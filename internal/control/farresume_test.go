package control_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/control/overdue"
	"orrery/internal/control/sites"
	"orrery/internal/control/unattended"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// reboot removes what does not survive a reboot: nodes stop, and networks are gone.
func (m *machine) reboot() {
	m.t.Helper()
	in := m.of("toykat")
	nodes, err := in.List(m.t.Context(), "toykat")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, n := range nodes {
		if n.State == observe.Running {
			if err := in.Stop(m.t.Context(), engine.RefOf(&n.Node)); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	networks, err := in.Networks().Observe("toykat")
	if err != nil {
		m.t.Fatal(err)
	}
	for i := range networks {
		if err := in.Networks().Remove(m.t.Context(), networks[i].Network); err != nil {
			m.t.Fatal(err)
		}
	}
}

// resumes lets a machine start its nodes on its own.
func (d *desk) resumes(m *machine) (told string, err error) {
	h := &unattended.Host{Machine: m, Dirs: m.dirs, Key: "toykat", Say: func(err error) { d.Error(err) }}
	h.Tell = func(format string, args ...any) { told += fmt.Sprintf(format, args...) }
	err = h.Run(d.Context(), apply.TriggerBoot, "")
	return told, err
}

// TestFarResume: after a reboot, a host starts its nodes without the other hosts and without the
// site directory. After that, the control host finds nothing to do.
func TestFarResume(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", strings.ReplaceAll(twoHosts, "net.far", "net.lan"))
	d.up()
	d.Links.Close()
	d.machine.others = nil
	for m, want := range map[*machine]string{other: "host sv2: started web1, web2", d.machine: "host sv1: started db"} {
		m.reboot()
		made, err := d.resumes(m)
		d.must(err)
		if made != want {
			t.Errorf("%s, not %s", made, want)
		}
		if made, err = d.resumes(m); err != nil || !strings.HasSuffix(made, ": nothing to start") {
			t.Errorf("a second time, %s: %v", made, err)
		}
	}
	d.machine.others = map[string]*machine{"sv2": other}
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	if !p.Empty() {
		t.Errorf("a plan has %d steps: %v", len(p.Steps), p.Steps)
	}
	// The verb resume on this machine also does this, without contacting the other host.
	d.Links.Close()
	d.machine.others = nil
	d.machine.reboot()
	keys, err := overdue.ResumeHost(t.Context(), d.Session)
	if err != nil || len(keys) != 1 {
		t.Errorf("resumed are %v: %v", keys, err)
	}
	d.machine.others = map[string]*machine{"sv2": other}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	for _, m := range []*machine{d.machine, other} {
		if _, err := os.Stat(apply.UnattendedPath(m.dirs, "toykat", apply.TriggerBoot)); err == nil {
			t.Error("a host would start something of a site that is down")
		}
	}
}

// TestFarResumeLate: if a killed run did not update the boot plans of hosts, the next run does,
// even if it has nothing else to do. It sends nothing to hosts that are up to date.
func TestFarResumeLate(t *testing.T) {
	d, other := farDesk(t)
	d.up()
	path := apply.UnattendedPath(other.dirs, "toykat", apply.TriggerBoot)
	for name, lose := range map[string]func() error{
		"of a state before": func() error { return os.WriteFile(path, []byte(`{"host": "sv2", "steps": [{}]}`), 0o600) },
		"damaged":           func() error { return os.WriteFile(path, []byte("{"), 0o600) },
		"none":              func() error { return os.Remove(path) },
	} {
		whole, err := os.ReadFile(path)
		d.must(err)
		d.must(lose())
		d.up()
		if now, err := os.ReadFile(path); err != nil || string(now) != string(whole) {
			t.Errorf("%s: the host does not do the same, %v: %d bytes in place of %d", name, err, len(now), len(whole))
		}
	}
	before, err := os.Stat(path)
	d.must(err)
	d.up()
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Error("a host was told what it knew")
	}
}

// TestFarResumeRefused: on its own, a host does not start a node that may be on another host, or
// whose state it does not know.
func TestFarResumeRefused(t *testing.T) {
	d, other := farDesk(t)
	d.up()
	h := other.Host("sv2", "toykat", nil)
	record := func(change func(*observe.Releases)) {
		t.Helper()
		r, err := h.Releases.Read(t.Context())
		d.must(err)
		change(&r)
		d.must(h.Releases.Copy(t.Context(), r))
	}
	wantStill := func() {
		t.Helper()
		nodes, err := other.of("toykat").List(t.Context(), "toykat")
		d.must(err)
		for _, n := range nodes {
			if n.State == observe.Running {
				t.Errorf("node %s runs", n.Name)
			}
		}
	}
	other.reboot()
	record(func(r *observe.Releases) { r.Switch = &observe.Switch{To: map[string]int{"web1": 700}} })
	_, err := d.resumes(other)
	d.wantExit(err, problem.HalfWay, "a switch to release 700 was interrupted", "orrery up")
	wantStill()
	record(func(r *observe.Releases) { r.Switch = nil })

	// An interrupted run has changed a node, and has not recorded its new state.
	nodes, err := other.of("toykat").List(t.Context(), "toykat")
	d.must(err)
	for i := range nodes {
		if n := &nodes[i]; n.Name == "web1" {
			n.Limits.Memory++
			d.must(other.of("toykat").Change(t.Context(), &n.Node))
		}
	}
	made, err := d.resumes(other)
	d.wantExit(err, problem.Left, "web1", "orrery up")
	if made != "host sv2: started web2" {
		t.Error(made)
	}

	// Another process holds the lock.
	letGo, err := h.Runs.Lock(t.Context(), host.Holder{Who: "ada"})
	d.must(err)
	_, err = d.resumes(other)
	d.wantExit(err, problem.Locked)
	letGo()

	// The stored plan is invalid.
	d.must(os.WriteFile(apply.UnattendedPath(other.dirs, "toykat", apply.TriggerBoot), []byte("{"), 0o600))
	_, err = d.resumes(other)
	d.wantExit(err, problem.Failed, "cannot be read", "orrery up")
}
