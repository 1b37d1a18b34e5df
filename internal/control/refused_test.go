package control_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/ci"
	"orrery/internal/control/layers"
	"orrery/internal/control/nodes"
	"orrery/internal/control/overdue"
	"orrery/internal/control/releases"
	"orrery/internal/control/roster"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/status"
	"orrery/internal/control/twins"
	"orrery/internal/control/volumes"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// forbidden is a machine that the caller may not change or read completely.
type forbidden struct{ *machine }

func (forbidden) Allowed() error { return problem.New(problem.Unable, "this needs root") }

// TestNotAllowed: each verb refuses a caller who may not change this machine, and does nothing.
func TestNotAllowed(t *testing.T) {
	d := diskDesk(t)
	d.up()
	d.stage(700)
	d.turnTo(700)
	to := filepath.Join(t.TempDir(), "backups") + "/"
	_, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.must(err)
	before, steps, s := d.nodes(), len(d.watch.steps), d.site()
	may := d.Session.Machine
	d.Session.Machine = forbidden{d.machine}
	c, ctx := d.Session, t.Context()
	for verb, do := range map[string]func() error{
		"up":          func() error { _, _, err := sites.Up(ctx, c, s, nil, sites.UpOptions{}); return err },
		"down":        func() error { _, err := sites.Down(ctx, c, s, nil, true); return err },
		"down --name": func() error { _, err := sites.DownNamed(ctx, c, "toykat", true); return err },
		"forget":      func() error { return sites.Forget(ctx, c, "toykat") },
		"start":       func() error { _, err := sites.Start(ctx, c, s, nil); return err },
		"stop":        func() error { _, err := sites.Stop(ctx, c, s, nil); return err },
		"renew":       func() error { _, err := sites.Renew(ctx, c, s, nil); return err },
		"restart":     func() error { _, err := nodes.Restart(ctx, c, s, nil); return err },
		"plan":        func() error { _, err := sites.Preview(ctx, c, nil, sites.PreviewOptions{}); return err },
		"status":      func() error { _, err := status.Read(ctx, c, s, nil); return err },
		"stage": func() error {
			_, err := releases.Stage(ctx, c, s, nil, releases.StageOptions{Release: 701})
			return err
		},
		"switch": func() error {
			_, err := releases.Switch(ctx, c, s, nil, releases.SwitchOptions{Release: 700})
			return err
		},
		"rollback": func() error { _, err := releases.Rollback(ctx, c, s, nil); return err },
		"confirm":  func() error { _, err := releases.Confirm(ctx, c, s, "by hand"); return err },
		"exec": func() error {
			_, err := nodes.Exec(ctx, c, s, []string{"db"}, nodes.ExecOptions{Command: []string{"true"}}, silent)
			return err
		},
		"journal":     func() error { _, err := nodes.ReadHistory(ctx, c, s, 0); return err },
		"prune":       func() error { _, err := releases.Prune(ctx, c, s, 0); return err },
		"image build": func() error { _, err := layers.Build(ctx, c, nil); return err },
		"mirror pull": func() error { _, err := layers.Pull(ctx, c, layers.PullOptions{}); return err },
		"volume ls":   func() error { _, _, err := volumes.List(ctx, c); return err },
		"volume mirror": func() error {
			return volumes.Mirror(ctx, c, volumes.MirrorOptions{}, func(volumes.Mirrored) {})
		},
		"volume adopt": func() error { _, err := volumes.Adopt(ctx, c, "db", "web1", nil); return err },
		"snapshot":     func() error { _, err := snapshots.Take(ctx, c, s, nil, snapshots.Extras{}); return err },
		"backup":       func() error { _, err := backups.Take(ctx, c, nil, to, backups.Options{}); return err },
		"restore": func() error {
			_, err := backups.Restore(ctx, c, to, control.RestoreOptions{Dir: d.dir, Replace: true})
			return err
		},
		"twin create":  func() error { _, _, err := twins.Create(ctx, c, twinOf("toykat", d.dir, "dev")); return err },
		"twin destroy": func() error { return twins.DestroyLocal(ctx, c, "toykat.dev") },
		"resume":       func() error { _, err := overdue.ResumeHost(ctx, c); return err },
		"ci":           func() error { _, err := ci.New(c, nil, ci.Options{}); return err },
	} {
		if err := do(); problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), "this needs root") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	d.Session.Machine = may
	if after := d.nodes(); after != before || len(d.watch.steps) != steps {
		t.Errorf("the nodes were %s and are %s, by %v", before, after, d.watch.steps[steps:])
	}
	if len(d.Register().Twins()) > 0 {
		t.Errorf("there are twins: %+v", d.Register().Twins())
	}
}

// TestSwitchRefused: a switch without a target release, or a trial without a release to go back to,
// changes nothing.
func TestSwitchRefused(t *testing.T) {
	d := newDesk(t)
	turn := func(o releases.SwitchOptions, on ...string) error {
		_, err := releases.Switch(t.Context(), d.Session, d.site(), on, o)
		return err
	}
	d.wantExit(turn(releases.SwitchOptions{Release: 700}), problem.Mistake,
		"release 700 of site toykat was not staged on this host")
	d.stage(700)
	d.wantExit(turn(releases.SwitchOptions{Release: 700, Within: hour, ByHand: true}), problem.Mistake,
		"the trial of release 700 has no live release to go back to")
	d.wantExit(turn(releases.SwitchOptions{Release: 700}, "nobody"), problem.Usage, "nobody")
	d.up()
	d.wantExit(turn(releases.SwitchOptions{Release: 701}), problem.Mistake,
		"release 701 of site toykat was not staged on this host")
	_, err := releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.wantExit(err, problem.Mistake, "has no former release")
	d.must(turn(releases.SwitchOptions{Release: 700, Within: hour, ByHand: true}))
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), []string{"web1"})
	d.wantExit(err, problem.Mistake, "release 700 is on trial with 3 nodes, which can only go back together")
	d.wantLive(700)
	_, err = releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{})
	d.wantExit(err, problem.Usage, "no release to stage")
	_, err = releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 799})
	d.wantExit(err, problem.Mistake, "799")
	_, err = releases.Stage(t.Context(), d.Session, d.site(), []string{"nobody"}, releases.StageOptions{Release: 701})
	d.wantExit(err, problem.Usage, "nobody")
}

// TestRosterRefused: a host that has nodes or data, or does not answer, is not removed from the
// site. A twin has the hosts of its site.
func TestRosterRefused(t *testing.T) {
	d, other := farDesk(t)
	d.up()
	d.write("site.toml", strings.ReplaceAll(twoHosts, "host  = \"sv2\"\n", ""))
	before := d.text()
	remove := func(name string) error { _, err := roster.Remove(t.Context(), d.Session, name); return err }
	d.wantExit(remove("sv2"), problem.Refused, "host sv2 still has 2 nodes: web1, web2", "orrery host drain sv2")
	drain := roster.Drain{Host: "sv2", Stay: true, Show: func(place.Moves, *plan.Plan) {}}
	d.Without = []string{"sv2"}
	_, err := drain.Run(t.Context(), d.Session, d.site())
	d.wantExit(err, problem.Usage, "host sv2 is left out")
	_, err = roster.Undrain(t.Context(), d.Session, d.site(), "sv2")
	d.wantExit(err, problem.Usage, "all hosts are left out")
	d.wantExit(remove("sv2"), problem.Usage, "all hosts are left out")
	d.Without = nil
	of := d.makeTwinOfTwo(t)
	_, err = roster.Add(t.Context(), of, "sv3", "10.8.1.3")
	d.wantExit(err, problem.Usage, "is a twin, which uses the hosts of its site")
	_, err = roster.Remove(t.Context(), of, "sv2")
	d.wantExit(err, problem.Usage, "is a twin, which uses the hosts of its site")
	if d.text() != before || len(other.of("toykat").Faults.Calls()) == 0 {
		t.Errorf("the site file is now\n%s", d.text())
	}
	d.write("site.toml", strings.Replace(toykat, "[network.lan]", "[host.sv1]\naddress = \"local\"\n[network.lan]", 1))
	d.wantExit(remove("sv1"), problem.Refused, "sv1 is the only host of the site")
}

// makeTwinOfTwo returns a session for a twin of a site on two hosts.
func (d *desk) makeTwinOfTwo(t *testing.T) *control.Session {
	t.Helper()
	for i, m := range []*machine{d.machine, d.machine.others["sv2"]} {
		m.of("toykat.dev").Addresses = m.of("toykat").Addresses
		if i == 1 && len(m.of("toykat.dev").Addresses) == 0 {
			t.Fatal("the host has no address")
		}
	}
	_, _, err := twins.Create(t.Context(), d.Session, twinOf("toykat", d.dir, "dev"))
	d.must(err)
	return d.ofTwin("dev").Session
}

// TestSurvive: for each host that may be lost, SimulateLosses returns which of its nodes find room on
// other hosts.
func TestSurvive(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", strings.ReplaceAll(twoHosts, "net.far", "net.lan"))
	d.up()
	survive := func(lost int) (string, error) {
		all, err := roster.SimulateLosses(t.Context(), d.Session, d.site(), lost)
		var words []string
		for _, l := range all {
			for _, n := range l.Moved {
				words = append(words, n.Node+" goes from "+strings.Join(l.Hosts, "+")+" to "+n.Host)
			}
			for _, n := range l.Lost {
				words = append(words, n.Node+" is lost with "+strings.Join(l.Hosts, "+"))
			}
		}
		return strings.Join(words, ", "), err
	}
	if got, err := survive(1); err != nil || got != "db is lost with sv1, web1 is lost with sv2, web2 is lost with sv2" {
		t.Errorf("of nodes that are on one host alone: %s (%v)", got, err)
	}
	d.write("site.toml", strings.ReplaceAll(strings.ReplaceAll(twoHosts, "net.far", "net.lan"), "host  = \"sv2\"\n", ""))
	if got, err := survive(1); err != nil ||
		got != "db is lost with sv1, web1 goes from sv2 to sv1, web2 goes from sv2 to sv1" {
		t.Errorf("of nodes that may be anywhere: %s (%v)", got, err)
	}
	_, err := survive(2)
	d.wantExit(err, problem.Usage, "the site has 2 hosts and cannot lose 2")
	delete(d.machine.others, "sv2")
	d.Links.Close()
	_, err = survive(1)
	d.wantExit(err, problem.Failed, "sv2")
	d.machine.others["sv2"] = other
}

// TestCheckSite: mistakes that loading a site does not find are found without contacting a host.
func TestCheckSite(t *testing.T) {
	d := newDesk(t)
	d.must(roster.Check(d.site()))
	d.write("roles/web/motd", "{{ .Nothing }}\n")
	d.write("roles/web/role.toml", "[[file]]\npath = \"/etc/motd\"\ntemplate = \"motd\"\n")
	if err := roster.Check(d.site()); err == nil || !strings.Contains(err.Error(), "motd") {
		t.Errorf("a template that cannot be rendered: %v", err)
	}
}

// TestOriginal: the original of a new twin is the site in a directory, or the site of that name
// that is up.
func TestOriginal(t *testing.T) {
	d := newDesk(t)
	d.up()
	t.Chdir(t.TempDir())
	for _, said := range []string{d.dir, "toykat"} {
		if s, dir, err := twins.LoadOriginal(d.Session, said); err != nil || s.Name != "toykat" || dir != d.dir {
			t.Errorf("%s: %+v in %s, %v", said, s, dir, err)
		}
	}
	_, err := sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	_, _, err = twins.LoadOriginal(d.Session, "toykat")
	d.wantExit(err, problem.Usage, "neither a site directory nor a site that is up on this host")
}

// TestHooksNotTold: if hooks cannot be notified, that is reported and recorded, and prevents
// nothing.
func TestHooksNotTold(t *testing.T) {
	d := newDesk(t)
	d.write("site.toml", toykat+"[hook.page]\non = [\"trial-ended\", \"switch-failed\"]\ncommand = [\"/bin/true\"]\n")
	d.up()
	d.stage(700)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil,
		releases.SwitchOptions{Release: 700, Within: hour, ByHand: true})
	d.must(err)
	d.machine.noLater = errors.New("no process can be begun")
	_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.must(err)
	if want := "trouble: the hooks of site toykat cannot be notified of trial-ended: no process can be begun"; !strings.Contains(d.watch.text(),
		want) {
		t.Errorf("told was %s", d.watch.text())
	}
	h, err := nodes.ReadHistory(t.Context(), d.Session, d.site(), 0)
	d.must(err)
	if !slices.ContainsFunc(h.Entries, func(e journal.Entry) bool { return e.Command == "hooks: trial-ended" }) {
		t.Errorf("noted was %+v", h.Entries)
	}
	d.wantLive(700)
}

// TestLogs: role output and journals of the selected nodes are read, with the requested lines and
// units. A node that does not run has only role output.
func TestLogs(t *testing.T) {
	d := newDesk(t)
	d.up()
	var ran []string
	d.of("toykat").Command = func(_ context.Context, _ engine.Ref, c host.Command) error {
		ran = append(ran, strings.Join(c.Args, " "))
		return nil
	}
	read := func(meant string, o nodes.LogOptions) (*speech, error) {
		s := &speech{}
		_, err := nodes.PrintLogs(t.Context(), d.Session, d.site(), meant, o, func(all []*site.Node) nodes.Output {
			for i := range all {
				s.Of(i)
			}
			return s
		})
		return s, err
	}
	s, err := read("web*", nodes.LogOptions{Lines: 7, Units: []string{"a", "b"}})
	d.must(err)
	if len(s.said) != 2 || len(ran) != 2 ||
		!strings.Contains(ran[0], "journalctl --no-pager --lines 7 --unit a --unit b") {
		t.Errorf("run was %q", ran)
	}
	for i, name := range []string{"web1", "web2"} {
		if said := s.said[i].String(); !strings.Contains(said, "==> node "+name) ||
			!strings.Contains(said, "==> journal of node "+name+"\n") {
			t.Errorf("node %s says %q", name, said)
		}
	}
	_, err = read("nobody", nodes.LogOptions{})
	d.wantExit(err, problem.Usage, "nobody")
}
