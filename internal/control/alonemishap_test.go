package control_test

import (
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/unattended"
	"orrery/internal/control/way"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// unattended returns a host that carries out its plans and reports errors to the desk.
func (d *desk) unattended(m *machine) *unattended.Host {
	return &unattended.Host{Machine: m, Dirs: m.dirs, Key: "toykat", Tell: func(string, ...any) {}, Say: func(err error) {
		d.watch.Event(control.Event{Kind: control.Trouble, Text: err.Error()})
	}}
}

// TestMishapAlone: if a host goes back from a trial on its own and any of its calls fails, the
// error is reported, and the host tries again until it has gone back.
func TestMishapAlone(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.up()
	d.stage(700)
	other := d.others["sv2"]
	begin := func() {
		if strings.Contains(d.nodes(), "web1 none running") { // it has gone back
			d.up()
			_, err := releases.Switch(t.Context(), d.Session, d.site(), nil,
				releases.SwitchOptions{Release: 700, Within: time.Hour})
			d.must(err)
		}
		h := other.Host("sv2", "toykat", nil)
		r, err := h.Releases.Read(t.Context())
		d.must(err)
		if r.Trial != nil {
			r.Trial.Until, r.Trial.Ends = time.Now().Add(-time.Second), 0
			d.must(h.Releases.Copy(t.Context(), r))
		}
	}
	alone := func() error {
		err := d.unattended(other).Run(t.Context(), apply.TriggerTrial, "")
		if problem.Is(err, problem.Reverted) {
			return nil
		}
		return err
	}
	d.try(m, trip{before: begin, verb: alone, reached: func() bool {
		r, err := other.Host("sv2", "toykat", nil).Releases.Read(t.Context())
		d.must(err)
		return r.Trial == nil && r.Switch == nil && r.Ended != nil && r.Ended.Result == observe.Reverted &&
			strings.Contains(d.nodes(), "web1 none running healthy")
	}, quiet: []string{"Nodes.List", "Nodes.Runner", "Releases.Read"}}) // the next round checks again
}

// TestLiveInstance: the live instance of a node is found among the nodes of all hosts, even if it
// does not run. Staged instances are not live.
func TestLiveInstance(t *testing.T) {
	d, _ := farDesk(t)
	d.write("site.toml", twoHosts+"[release.700]\n")
	d.up()
	d.stage(700)
	_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"web2"})
	d.must(err)
	roll, err := way.NewDirectory(t.Context(), d.Session, d.site())
	d.must(err)
	for name, state := range map[string]observe.State{"db": observe.Running, "web1": observe.Running,
		"web2": observe.Stopped} {
		n, err := roll.Live(t.Context(), name)
		d.must(err)
		if n.Name != name || n.Staged || n.Release != 0 || n.State != state {
			t.Errorf("of %s it is %+v", name, n)
		}
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), []string{"web1"}, false)
	d.must(err)
	roll, err = way.NewDirectory(t.Context(), d.Session, d.site())
	d.must(err)
	if n, err := roll.Live(t.Context(), "web1"); !problem.Is(err, problem.Failed) || n != nil {
		t.Errorf("of a node that is gone: %+v, %v", n, err)
	}
	if n, err := roll.Live(t.Context(), "nobody"); err == nil {
		t.Errorf("of a node that is not declared: %+v", n)
	}
}
