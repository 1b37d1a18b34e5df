package control_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/nodes"
	"orrery/internal/control/releases"
	"orrery/internal/control/roster"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/twins"
	"orrery/internal/control/volumes"
	"orrery/internal/host"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
)

const releasesOfToykat = "[release.700]\n[release.701]\n[release.702]\n"

// A changing desk is a production site on two hosts, with a live release, a staged one, a snapshot
// and a backup.
type changing struct {
	*desk
	id, to string // ID of the snapshot, and path of the backup
}

func newChanging(t *testing.T) changing {
	t.Helper()
	d, _ := frailDesk(t, true)
	d.write("site.toml", strings.Replace(onEach, "[site]", "[site]\nproduction = true", 1)+releasesOfToykat)
	d.up()
	d.stage(700)
	d.turnTo(700)
	d.stage(701)
	taken, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	d.must(err)
	to := filepath.Join(t.TempDir(), "backups") + "/"
	_, err = backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.must(err)
	return changing{d, taken.ID, to}
}

// verbs returns the verbs that change a site or its stored data, for the selected nodes.
func (c changing) verbs(ctx context.Context, of string) map[string]func() error {
	s := c.site()
	on := []string{of}
	if of == "" {
		on = nil
	}
	all := map[string]func() error{
		"down":    func() error { _, err := sites.Down(ctx, c.Session, s, on, true); return err },
		"stop":    func() error { _, err := sites.Stop(ctx, c.Session, s, on); return err },
		"restart": func() error { _, err := nodes.Restart(ctx, c.Session, s, on); return err },
		"stage": func() error {
			_, err := releases.Stage(ctx, c.Session, s, on, releases.StageOptions{Release: 702})
			return err
		},
		"switch": func() error {
			_, err := releases.Switch(ctx, c.Session, s, on, releases.SwitchOptions{Release: 701})
			return err
		},
		"rollback": func() error { _, err := releases.Rollback(ctx, c.Session, s, on); return err },
		"snapshot": func() error {
			_, err := snapshots.Take(ctx, c.Session, s, on, snapshots.Extras{})
			return err
		},
		"snapshot restore": func() error { _, err := snapshots.Restore(ctx, c.Session, s, c.id, on); return err },
		"backup": func() error {
			_, err := backups.Take(ctx, c.Session, on, c.to, backups.Options{})
			return err
		},
		"restore of a node": func() error {
			_, err := backups.ReplaceNode(ctx, c.Session, c.to, cmp.Or(of, "web1"))
			return err
		},
		"volume adopt": func() error { _, err := volumes.Adopt(ctx, c.Session, "db", cmp.Or(of, "web1"), nil); return err },
	}
	if of != "" {
		return all
	}
	all["snapshot rm"] = func() error { return snapshots.Remove(ctx, c.Session, s, []string{c.id}) }
	all["release prune"] = func() error { _, err := releases.Prune(ctx, c.Session, s, 0); return err }
	all["host drain"] = func() error {
		_, err := roster.Drain{Host: "sv2", Stay: true, Show: func(place.Moves, *plan.Plan) {}}.Run(ctx, c.Session, s)
		return err
	}
	all["restore"] = func() error {
		_, err := backups.Restore(ctx, c.Session, c.to, control.RestoreOptions{Dir: c.dir, Replace: true})
		return err
	}
	all["twin create"] = func() error {
		_, _, err := twins.Create(ctx, c.Session, twinOf("toykat", c.dir, "dev"))
		if err == nil {
			err = twins.Destroy(ctx, c.Session, "dev")
		}
		return err
	}
	return all
}

// unchanged fails the test if a verb has done something.
func (c changing) unchanged(verb, before string, steps int) {
	c.Helper()
	if after := c.nodes(); after != before {
		c.Errorf("%s: the nodes were %s and are %s", verb, before, after)
	}
	if done := c.watch.steps[steps:]; len(done) > 0 {
		c.Errorf("%s has done %q", verb, done)
	}
}

// TestLockedVerbs: while a process changes a site on one of its hosts, every other change on any
// host is refused, and the error names the holder of the lock.
func TestLockedVerbs(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	other := c.others["sv2"].Host("sv2", "toykat", nil)
	letGo, err := other.Runs.Lock(t.Context(), host.NewHolder("eve", "orrery up"))
	c.must(err)
	defer letGo()
	before, steps := c.nodes(), len(c.watch.steps)
	for verb, do := range c.verbs(t.Context(), "") {
		if verb == "twin create" || verb == "restore" || verb == "backup" {
			continue // the first is of another site, and the others wait
		}
		if err := do(); !problem.Is(err, problem.Locked) || !strings.Contains(err.Error(), "eve") {
			t.Errorf("%s: %v", verb, err)
		}
		c.unchanged(verb, before, steps)
	}
}

// TestNobodyMeant: a verb for an undeclared node does nothing, and the error names what is unknown.
func TestNobodyMeant(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	before, steps := c.nodes(), len(c.watch.steps)
	for verb, do := range c.verbs(t.Context(), "nobody") {
		if err := do(); err == nil || !strings.Contains(err.Error(), "nobody") {
			t.Errorf("%s: %v", verb, err)
		}
		c.unchanged(verb, before, steps)
	}
}

// TestCancelledVerbs: a verb whose context is cancelled before it begins does nothing, and does not
// report success.
func TestCancelledVerbs(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller has gone"))
	before, steps := c.nodes(), len(c.watch.steps)
	for verb, do := range c.verbs(ctx, "") {
		if err := do(); err == nil {
			t.Errorf("%s succeeds", verb)
		}
		c.unchanged(verb, before, steps)
	}
}

// TestDeclinedVerbs: without consent nothing is done, and each verb that asks returns that error.
func TestDeclinedVerbs(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	c.Confirmer = &refuses{}
	before, steps := c.nodes(), len(c.watch.steps)
	for _, verb := range []string{"down", "stop", "restart", "switch", "rollback", "snapshot restore",
		"restore of a node", "restore", "release prune"} {
		if err := c.verbs(t.Context(), "")[verb](); !problem.Is(err, problem.Refused) {
			t.Errorf("%s: %v", verb, err)
		}
		c.unchanged(verb, before, steps)
	}
}

// TestBlockedVerbs: a change that cannot be recorded in the journal of a host is not made, and each
// verb that changes something there reports that first.
func TestBlockedVerbs(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	journal := c.others["sv2"].dirs.Journal("toykat")
	c.must(os.Rename(journal, journal+".aside"))
	c.must(os.MkdirAll(filepath.Join(journal, "in the way"), 0o755))
	before, steps := c.nodes(), len(c.watch.steps)
	all := c.verbs(t.Context(), "")
	delete(all, "host drain") // draining a host is not in a journal
	verbs := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(verb string) bool { return verb == "restore" })
	// once a restore has begun, each other verb asks for it to be completed first
	for _, verb := range append(verbs, "restore") {
		if err := all[verb](); err == nil || !strings.Contains(err.Error(), "journal") {
			t.Errorf("%s: %v", verb, err)
		}
		c.unchanged(verb, before, steps)
	}
}
