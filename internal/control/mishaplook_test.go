package control_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/layers"
	"orrery/internal/control/nodes"
	"orrery/internal/control/releases"
	"orrery/internal/control/roster"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/status"
	"orrery/internal/control/twins"
	"orrery/internal/control/volumes"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/site"
)

// TestMishapLook: a verb that shows something never silently shows less because a call of a host
// has failed. It returns the error or reports it.
func TestMishapLook(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.stage(700)
	d.turnTo(700)
	taken, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	d.must(err)
	for name, look := range map[string]func() error{
		"plan": func() error {
			p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{Probe: true})
			if err == nil && !p.Empty() {
				t.Errorf("planned is %v", p.Steps)
			}
			return err
		},
		"plan of down": func() error {
			_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{Down: true, Volumes: true})
			return err
		},
		"status": func() error {
			all, err := status.Read(t.Context(), d.Session, d.site(), nil)
			if err == nil {
				err = all.Probe(t.Context())
			}
			return err
		},
		"release ls": func() error { _, err := releases.List(t.Context(), d.Session, d.site()); return err },
		"release show": func() error {
			all, err := releases.Show(t.Context(), d.Session, d.site(), 700, nil)
			if err == nil && len(all) != 2 {
				t.Errorf("of the release there are %+v", all)
			}
			return err
		},
		"snapshot ls": func() error {
			all, err := snapshots.List(t.Context(), d.Session, d.site())
			if err == nil && (len(all) != 1 || all[0].ID != taken.ID || len(all[0].Nodes) != 2) {
				t.Errorf("the snapshots are %+v", all)
			}
			return err
		},
		"snapshot size": func() error { _, err := snapshots.Size(t.Context(), taken); return err },
		"volume ls":     func() error { _, _, err := volumes.List(t.Context(), d.Session); return err },
		"image ls": func() error {
			all, err := layers.List(t.Context(), d.Session)
			if err == nil && len(all) == 0 {
				t.Error("there are no layers")
			}
			return err
		},
		"journal": func() error {
			h, err := nodes.ReadHistory(t.Context(), d.Session, d.site(), 0)
			if err == nil {
				err = h.Silent
			}
			return err
		},
		"rebalance?": func() error { _, err := roster.ProposeMoves(t.Context(), d.Session, d.site()); return err },
		"survive?":   func() error { _, err := roster.SimulateLosses(t.Context(), d.Session, d.site(), 1); return err },
		"move?": func() error {
			_, err := nodes.MovePlan(t.Context(), d.Session, d.site(), []string{"db"}, "sv1")
			return err
		},
		"twin ls": func() error {
			all, silent, err := twins.List(t.Context(), d.Session)
			if err == nil && silent == nil && len(all) > 0 {
				t.Errorf("the twins are %v", all)
			}
			if err == nil {
				err = silent
			}
			return err
		},
		"graph": func() error {
			_, _, silent, err := status.Draw(t.Context(), d.Session, d.site(), nil, false)
			if err == nil {
				err = silent
			}
			return err
		},
	} {
		t.Log(name)
		// The other host has the same copy, and an interrupted restore does not prevent reading.
		quiet := []string{"Releases.SendEdition", "Backups.Restoring"}
		d.try(m, trip{before: func() {}, verb: look, reached: func() bool { return true }, quiet: quiet})
	}
}

// TestMishapRelease: any failure while a trial is begun or confirmed, or releases are removed, is
// reported.
func TestMishapRelease(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.up()
	d.stage(700)
	read := func() (on bool, confirmed int) {
		h, err := d.Hosts(t.Context(), d.site())
		d.must(err)
		r, err := h.Records().Read(t.Context())
		d.must(err)
		return r.Trial != nil, len(r.Confirmed)
	}
	begin := func() error {
		_, err := releases.Switch(t.Context(), d.Session, d.site(), nil,
			releases.SwitchOptions{Release: 700, Within: time.Hour})
		return err
	}
	back := func() {
		if strings.Contains(d.nodes(), "db 700") {
			_, err := releases.Rollback(t.Context(), d.Session, d.site(), nil)
			d.must(err)
		}
	}
	d.try(m, trip{before: back, verb: begin, reached: func() bool { on, _ := read(); return on },
		quiet: []string{"Releases.SendEdition"}})
	d.try(m, trip{before: func() { back(); d.must(begin()) }, verb: func() error {
		_, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
		return err
	}, reached: func() bool { on, n := read(); return !on && n > 0 },
		// it is optional to record that all hosts know of the confirmation
		quiet: []string{"Releases.SendEdition", "Releases.Copy"}})
}

// TestMishapHost: any failure while a host is drained or undrained is reported.
func TestMishapHost(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.write("site.toml", strings.Replace(strings.Replace(onEach, "roles = [\"web\"]\nhost  = \"sv2\"\n",
		"roles = [\"web\"]\n", 1), "net.far", "net.lan", 1))
	d.up()
	drained := func() bool {
		f, err := d.Hosts(t.Context(), d.site())
		d.must(err)
		h, _ := f.Host("sv2")
		mark, err := h.State.Cordoned(t.Context())
		d.must(err)
		return mark != nil
	}
	undrain := func() error {
		_, err := roster.Undrain(t.Context(), d.Session, d.site(), "sv2")
		return err
	}
	drain := func() error {
		_, err := roster.Drain{Host: "sv2", Stay: true, Show: func(place.Moves, *plan.Plan) {}}.Run(t.Context(), d.Session,
			d.site())
		return err
	}
	d.try(m, trip{before: func() { d.must(undrain()) }, verb: drain, reached: drained})
	d.try(m, trip{before: func() { d.must(drain()) }, verb: undrain, reached: func() bool { return !drained() }})
	d.try(m, trip{before: func() {}, verb: func() error {
		_, err := nodes.Restart(t.Context(), d.Session, d.site(), []string{"db", "web1"})
		return err
	}, reached: d.are(bothUp)})
	d.try(m, trip{before: func() {}, verb: func() error {
		_, err := nodes.Exec(t.Context(), d.Session, d.site(), []string{"*"},
			nodes.ExecOptions{Command: []string{"true"}, Parallel: 1}, silent)
		return err
	}, reached: d.are(bothUp), quiet: []string{"Nodes.Runner"}}) // the node reports it
}

func silent([]*site.Node) nodes.Output { return quiet{} }

// quiet is a speech that displays nothing.
type quiet struct{}

func (quiet) Of(int) nodes.NodeOutput { return quiet{} }
func (quiet) Close() error            { return nil }
func (quiet) Out() io.Writer          { return io.Discard }
func (quiet) Errs() io.Writer         { return io.Discard }
func (quiet) End(nodes.Result)        {}

// TestMishapRestore: any failure while a backup is restored is reported, and the site is restored
// in the end.
func TestMishapRestore(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.writeAll("then")
	to := filepath.Join(t.TempDir(), "backups") + "/"
	_, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.must(err)
	d.try(m, trip{before: func() { d.up(); d.writeAll("now") }, verb: func() error {
		_, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir, Replace: true})
		return err
	}, reached: d.backThen})
}

// TestMishapAdopt: any failure while a node takes over the data of another is reported, and the
// data belongs to one of the two.
func TestMishapAdopt(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.say("db", book, "paid")
	as := func(name, id string) {
		d.write("site.toml", strings.Replace(onEach, "[node.db]\nid    = 11", "[node."+name+"]\nid    = "+id, 1))
	}
	from, to, n := "db", "ledger", 0
	adopt := func() error {
		_, err := volumes.Adopt(t.Context(), d.Session, from, to, nil)
		return err
	}
	d.try(m, trip{before: func() {
		d.up()
		if n++; n > 1 {
			from, to = to, from
		}
		as(to, map[string]string{"db": "11", "ledger": "12"}[to])
	}, verb: adopt, reached: func() bool {
		text, err := os.ReadFile(filepath.Join(d.dirs.Volumes("toykat"), "archive", to, "book"))
		return err == nil && string(text) == "paid"
	}})
}
