package control_test

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/control/backups"
	"orrery/internal/control/layers"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/twins"
	"orrery/internal/site"
)

// TestMishapUndo: any failure of an up with Undo, or of a restart, is reported.
func TestMishapUndo(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.try(m, trip{before: d.downAll, verb: func() error {
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{Undo: true})
		return err
	}, reached: d.are(bothUp)})
	// A node that runs and is not proven is left to up.
	d.try(m, trip{before: func() {
		_, err := sites.Stop(t.Context(), d.Session, d.site(), nil)
		d.must(err)
	}, verb: func() error {
		_, err := sites.Start(t.Context(), d.Session, d.site(), nil)
		return err
	}, reached: d.are(bothUp), again: func() error { d.up(); return nil }})
}

// TestMishapPrune: any failure while releases, snapshots or layers are removed is reported, and in
// the end they are removed.
func TestMishapPrune(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.try(m, trip{before: func() { d.stage(700) }, verb: func() error {
		_, err := releases.Prune(t.Context(), d.Session, d.site(), 0)
		return err
	}, reached: d.are(bothUp), quiet: []string{"Releases.Editions"}}) // releases.lock still names it
	var taken *snapshots.Snapshot
	d.try(m, trip{before: func() {
		var err error
		taken, err = snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
		d.must(err)
	}, verb: func() error {
		return snapshots.Remove(t.Context(), d.Session, d.site(), []string{taken.ID})
	}, reached: func() bool {
		all, err := snapshots.List(t.Context(), d.Session, d.site())
		d.must(err)
		return len(all) == 0
	}})
	d.try(m, trip{before: func() {}, verb: func() error {
		_, err := layers.Remove(t.Context(), d.Session, "sv1", "sv2")
		return err
	}, reached: d.are(bothUp)})
}

// TestMishapCopies: any failure while a twin gets copies of its original's volumes is reported, and
// in the end it has them.
func TestMishapCopies(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.say("db", book, "paid")
	of := twinOf("toykat", d.dir, "dev")
	of.Volumes = site.CopySnapshot
	create := func() error { _, _, err := twins.Create(t.Context(), d.Session, of); return err }
	d.try(m, trip{before: func() {
		if all, _, err := twins.List(t.Context(), d.Session); err != nil || len(all) > 0 {
			d.must(twins.Destroy(t.Context(), d.Session, "dev"))
		}
	}, verb: create, again: func() error {
		if all, _, err := twins.List(t.Context(), d.Session); err != nil || len(all) == 0 {
			return create()
		}
		of := d.ofTwin("dev")
		_, _, err := sites.Up(t.Context(), of.Session, of.site(), nil, sites.UpOptions{})
		return err
	}, reached: func() bool {
		all, _, err := twins.List(t.Context(), d.Session)
		d.must(err)
		text, err := os.ReadFile(filepath.Join(d.dirs.Volumes("toykat.dev"), "archive", "db", "book"))
		return err == nil && string(text) == "paid" && len(all) == 1 && all[0].Running == 2
	}})
}

// TestMishapReplace: any failure while a node is restored from a backup is reported, and in the end
// it is restored.
func TestMishapReplace(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.writeAll("then")
	to := filepath.Join(t.TempDir(), "backups") + "/"
	_, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.must(err)
	d.try(m, trip{before: func() { d.up(); d.say("web1", motd, "now") }, verb: func() error {
		_, err := backups.ReplaceNode(t.Context(), d.Session, to, "web1")
		return err
	}, reached: func() bool { return d.nodes() == bothUp && d.reads("web1", motd, "then") }})
}
