package control_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	"orrery/internal/observe"
)

// looks returns verbs that show the records of hosts. Each returns everything that it shows.
func (d *desk) looks() map[string]func() (any, error) {
	ctx := d.Context()
	return map[string]func() (any, error){
		"plan": func() (any, error) {
			p, err := sites.Preview(ctx, d.Session, nil, sites.PreviewOptions{})
			return fmt.Sprint(p), err
		},
		"plan of down": func() (any, error) {
			p, err := sites.Preview(ctx, d.Session, nil, sites.PreviewOptions{Down: true, Volumes: true})
			return fmt.Sprint(p), err
		},
		"status": func() (any, error) {
			all, err := status.Read(ctx, d.Session, d.site(), nil)
			if err != nil {
				return nil, err
			}
			return all.Nodes, errors.Join(all.Silent, overdue.ReportPending(ctx, d.Session, d.site()))
		},
		"release ls":  func() (any, error) { return releases.List(ctx, d.Session, d.site()) },
		"snapshot ls": func() (any, error) { return snapshots.List(ctx, d.Session, d.site()) },
		"volume ls": func() (any, error) {
			all, orphans, err := volumes.List(ctx, d.Session)
			return []any{all, orphans}, err
		},
		"image ls": func() (any, error) { return layers.List(ctx, d.Session) },
		"journal": func() (any, error) {
			h, err := nodes.ReadHistory(ctx, d.Session, d.site(), 0)
			if err != nil {
				return nil, err
			}
			for host, lines := range h.Damaged {
				return "", fmt.Errorf("host %s: lines %v cannot be read", host, lines)
			}
			return h, h.Silent
		},
		"host ls": func() (any, error) {
			var all []string
			for _, h := range d.Connector(d.site()).Check(ctx) {
				all = append(all, fmt.Sprint(h.Host, h.Nodes, h.Running, h.Drained, h.Wrong))
			}
			return all, nil
		},
		"twin ls": func() (any, error) {
			all, silent, err := twins.List(ctx, d.Session)
			return all, errors.Join(silent, err)
		},
		"rebalance?": func() (any, error) { return roster.ProposeMoves(ctx, d.Session, d.site()) },
	}
}

// shown returns what a verb shows, including its events.
func (d *desk) shown(look func() (any, error)) (string, error) {
	d.watch.events = nil
	value, err := look()
	text, _ := json.Marshal(value)
	// it depends on how long this test has taken
	return strings.ReplaceAll(string(text), `"stale":true,`, "") + d.watch.text(), err
}

// TestDamagedRecords: an unreadable record on a host is never treated as empty. A verb that then
// shows something else than before says why.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	alone := diskDesk(t)
	alone.write("site.toml", strings.Replace(toykat, `[node."web{1..2}"]`, "[node.web1]", 1))
	of, _ := frailDesk(t, true)
	for d, machines := range map[*desk][]*machine{alone: {alone.machine}, of: {of.machine, of.others["sv2"]}} {
		d.up()
		d.stage(700)
		d.turnTo(700)
		_, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
		d.must(err)
		f, err := d.Hosts(t.Context(), d.site())
		d.must(err)
		for _, h := range f.All {
			d.must(h.State.SetCordoned(t.Context(), &observe.Drain{Who: "ada"}))
		}
		before := map[string]string{}
		for name, look := range d.looks() {
			before[name], err = d.shown(look)
			d.must(err)
		}
		for _, m := range machines {
			for _, path := range m.records() {
				original, err := os.ReadFile(path)
				d.must(err)
				d.must(os.WriteFile(path, []byte("{"), 0o600))
				for name, look := range d.looks() {
					if text, err := d.shown(look); err == nil && text != before[name] &&
						!strings.Contains(text, "cannot be read") {
						t.Errorf("%s is damaged, and %s shows\n%s\nnot\n%s", path, name, text, before[name])
					}
				}
				d.must(os.WriteFile(path, original, 0o600))
			}
		}
	}
}

// records returns the files in which a machine stores records of sites, without the data of nodes.
func (m *machine) records() (all []string) {
	m.t.Helper()
	err := filepath.WalkDir(filepath.Join(m.dirs.State, "sites"), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (slices.Contains([]string{"private", "upper", "volumes", "tree"}, e.Name())):
			return fs.SkipDir
		case e.Type().IsRegular():
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}
