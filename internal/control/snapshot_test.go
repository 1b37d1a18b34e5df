package control_test

import (
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/overdue"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/way"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// say writes a file in a running node, from inside the node.
func (d *desk) say(node, path, text string) {
	d.Helper()
	in, err := way.Runner(d.Context(), d.Session, d.site(), node)
	d.must(err)
	d.must(in.Put(d.Context(), host.File{Path: path, Content: []byte(text), Mode: 0o644}))
}

// wantSaid wants a file of a node that runs to hold this.
func (d *desk) wantSaid(node, path, want string) {
	d.Helper()
	in, err := way.Runner(d.Context(), d.Session, d.site(), node)
	d.must(err)
	var out strings.Builder
	err = in.Run(d.Context(), host.Command{Args: []string{"cat", path}, Stdout: &out})
	if out.String() != want {
		d.Errorf("%s of %s holds %q, not %q (%v)", path, node, out.String(), want, err)
	}
}

const motd, book = "/etc/motd", "/srv/archive/book"

// writeAll writes a text in nodes of two hosts and in a volume.
func (d *desk) writeAll(text string) {
	d.Helper()
	d.say("db", motd, text)
	d.say("db", book, text)
	d.say("web1", motd, text)
}

// wantWritten reports what of that they do not have.
func (d *desk) wantWritten(db, web string) {
	d.Helper()
	d.wantSaid("db", motd, db)
	d.wantSaid("db", book, db)
	d.wantSaid("web1", motd, web)
}

// TestSnapshot: the data of nodes and their volumes is restored, for all nodes or for some. If
// restoring is refused or fails, nothing changes.
func TestSnapshot(t *testing.T) {
	d := diskDesk(t)
	s := d.site()
	_, err := snapshots.Take(t.Context(), d.Session, s, nil, snapshots.Extras{})
	d.wantExit(err, problem.Failed, "none of these nodes", "orrery up")
	d.up()
	want := func(db, web string) {
		t.Helper()
		d.wantWritten(db, web)
		d.wantNodes(allUp)
	}
	d.writeAll("then")
	taken, err := snapshots.Take(t.Context(), d.Session, s, nil, snapshots.Extras{})
	d.must(err)
	if size, err := snapshots.Size(t.Context(), taken); err != nil || size.Apparent == 0 || len(taken.Nodes) != 3 ||
		len(taken.Volumes) != 1 {
		t.Errorf("taken was %+v of %+v, %v", taken, size, err)
	}
	d.writeAll("now")
	asker := &refuses{}
	d.Confirmer = asker
	_, err = snapshots.Restore(t.Context(), d.Session, s, taken.ID, nil)
	d.wantExit(err, problem.Refused)
	if len(asker.asked) != 1 || asker.asked[0].About != control.Restore ||
		!strings.Contains(asker.asked[0].Why, "3 nodes") {
		t.Errorf("asked was %+v", asker.asked)
	}
	d.Confirmer = control.AssumeYes{}
	want("now", "now")

	d.fault.Fail("Start", "web1", 1, nil)
	_, err = snapshots.Restore(t.Context(), d.Session, s, taken.ID, nil)
	d.wantExit(err, problem.Undone, "the previous state was restored")
	d.up() // runs their checks again
	want("now", "now")
	d.fault.Fail("SetProgress", "web1", 1, nil)
	_, err = snapshots.Restore(t.Context(), d.Session, s, taken.ID, nil)
	d.wantExit(err, problem.Failed, "injected failure")
	d.up()
	want("now", "now")

	made, err := snapshots.Restore(t.Context(), d.Session, s, taken.ID, []string{"db"})
	d.must(err)
	if made.Nodes != 1 || made.What != "snapshot "+taken.ID {
		t.Errorf("restored was %+v", made)
	}
	want("then", "now")
	made, err = snapshots.Restore(t.Context(), d.Session, s, taken.ID, nil)
	d.must(err)
	if made.Nodes != 3 || len(made.Lost)+len(made.Left) > 0 {
		t.Errorf("restored was %+v", made)
	}
	want("then", "then")
	f, err := d.HostsWithoutReleases(t.Context(), s)
	d.must(err)
	entries, _, err := f.All[0].Runs.ReadJournal(t.Context(), 0)
	d.must(err)
	if last := entries[len(entries)-1]; last.Result != "done" {
		t.Errorf("the journal ends with %+v", last)
	}
}

// TestSnapshotUndone: after an undone restoring, it is still known what had been applied to nodes
// since the snapshot.
func TestSnapshotUndone(t *testing.T) {
	d := diskDesk(t)
	apply := func(text string) {
		t.Helper()
		d.write("roles/db/ledger.tmpl", text)
		d.up()
		d.wantSaid("db", "/etc/ledger", text)
	}
	d.write("roles/db/role.toml", "[[file]]\npath = \"/etc/ledger\"\ntemplate = \"ledger.tmpl\"\n")
	apply("then")
	taken, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	d.must(err)
	apply("now")
	d.fault.Fail("Start", "db", 1, nil)
	_, err = snapshots.Restore(t.Context(), d.Session, d.site(), taken.ID, nil)
	d.wantExit(err, problem.Undone)
	d.wantSaid("db", "/etc/ledger", "now")
	apply("then")
}

// TestSnapshotOfNode: a node can be restored only if it is still on the same host, and only
// existing snapshots can be removed.
func TestSnapshotOfNode(t *testing.T) {
	d := diskDesk(t)
	d.up()
	s := d.site()
	taken, err := snapshots.Take(t.Context(), d.Session, s, []string{"web1"}, snapshots.Extras{})
	d.must(err)
	if len(taken.Nodes) != 1 {
		t.Errorf("in it are %+v", taken.Nodes)
	}
	_, err = snapshots.Restore(t.Context(), d.Session, s, taken.ID, []string{"web2"})
	d.wantExit(err, problem.Usage, "none of these nodes is in snapshot")
	_, err = snapshots.Restore(t.Context(), d.Session, s, "yesterday", nil)
	d.wantExit(err, problem.Usage, "yesterday")
	_, err = snapshots.Restore(t.Context(), d.Session, s, taken.ID, []string{"nobody"})
	d.wantExit(err, problem.Usage, "nobody")
	d.stage(700)
	d.turnTo(700)
	_, err = snapshots.Restore(t.Context(), d.Session, s, taken.ID, nil)
	d.wantExit(err, problem.Surprise, "belongs to another release")
	d.wantLive(700)

	d.wantExit(snapshots.Remove(t.Context(), d.Session, s, []string{taken.ID, "yesterday"}), problem.Usage, "yesterday")
	if all, err := snapshots.List(t.Context(), d.Session, s); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	d.must(snapshots.Remove(t.Context(), d.Session, s, []string{taken.ID}))
	if all, err := snapshots.List(t.Context(), d.Session, s); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestSnapshotKilled: restoring is killed at every operation, and the same command completes it.
// Until then, the interruption is reported.
func TestSnapshotKilled(t *testing.T) {
	for n := 1; ; n++ {
		d := diskDesk(t)
		d.up()
		s := d.site()
		d.say("db", motd, "then")
		taken, err := snapshots.Take(t.Context(), d.Session, s, nil, snapshots.Extras{})
		d.must(err)
		d.say("db", motd, "now")
		d.fault.KillAt(n)
		ctx, cancel := d.fault.KillContext(t.Context())
		_, err = snapshots.Restore(ctx, d.Session, s, taken.ID, nil)
		cancel()
		d.fault.Revive()
		if err == nil {
			if n < 4 {
				t.Errorf("it was over after %d operations", n)
			}
			return
		}
		d.must(overdue.ReportPending(d.Context(), d.Session, s))
		_, err = snapshots.Restore(t.Context(), d.Session, s, taken.ID, nil)
		d.must(err)
		d.up()
		d.wantSaid("db", motd, "then")
		d.wantNodes(allUp)
		if t.Failed() {
			t.Fatalf("killed at %d", n)
		}
	}
}

var _ engine.Layered = nodesOnDisk{}
