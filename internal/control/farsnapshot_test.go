package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/overdue"
	"orrery/internal/control/snapshots"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/snapshot"
)

const farUp = "db none running healthy, web1 none running healthy, web2 none running healthy"

// farDisks returns a site on two hosts, whose nodes have directories.
func farDisks(t *testing.T) (d *desk, other *machine) {
	t.Helper()
	d, other = diskDesk(t), newMachine(t)
	other.disk = true
	d.machine.others = map[string]*machine{"sv2": other}
	d.write("site.toml", twoHosts)
	d.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.1/24", Link: "eth0", MTU: 1500}}
	other.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.2/24", Link: "eth0", MTU: 1500}}
	d.up()
	return d, other
}

// noSnapshot fails the test if machines have anything of a snapshot, or frozen nodes.
func (d *desk) noSnapshot(what string, on ...*machine) {
	d.Helper()
	for _, m := range on {
		if left, _ := filepath.Glob(filepath.Join(m.dirs.Snapshots("toykat"), "*")); len(left) > 0 {
			d.Errorf("%s: left are %v", what, left)
		}
		if left, _ := filepath.Glob(filepath.Join(m.dirs.Snapshots("toykat"), ".*")); len(left) > 0 {
			d.Errorf("%s: left are %v", what, left)
		}
		nodes, err := m.of("toykat").List(d.Context(), "toykat")
		d.must(err)
		for _, n := range nodes {
			if n.State != observe.Running {
				d.Errorf("%s: node %s is %s", what, n.Name, n.State)
			}
		}
	}
}

// TestFarSnapshot: a snapshot has the nodes of all hosts, and is restored on all of them or on
// none. Every control host finds the same.
func TestFarSnapshot(t *testing.T) {
	d, other := farDisks(t)
	want := func(db, web string) {
		t.Helper()
		d.wantWritten(db, web)
		d.wantNodes(farUp)
	}
	d.writeAll("then")
	other.fault.Fail("Freeze", "web1", 1, nil)
	_, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	if err == nil || strings.Count(err.Error(), "injected failure") != 1 {
		t.Errorf("a node that cannot be frozen: %v", err)
	}
	d.noSnapshot("a node that cannot be frozen", d.machine, other)

	taken, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	d.must(err)
	if len(taken.Nodes) != 3 || strings.Join(taken.Hosts, " ") != "sv1 sv2" || taken.Pause <= 0 || taken.Skew < 0 ||
		taken.Skew > taken.Pause {
		t.Errorf("taken was %+v", taken.Snapshot)
	}
	if size, err := snapshots.Size(t.Context(), taken); err != nil || size.Apparent == 0 {
		t.Errorf("its size is %+v: %v", size, err)
	}
	d.writeAll("now")
	other.fault.Fail("Start", "web1", 1, nil)
	_, err = snapshots.Restore(t.Context(), d.Session, d.site(), taken.ID, nil)
	d.wantExit(err, problem.Undone, "the previous state was restored")
	d.up()
	want("now", "now")
	if _, err = snapshots.Restore(t.Context(), d.Session, d.site(), taken.ID, []string{"web1"}); err != nil {
		t.Fatal(err)
	}
	want("now", "then")

	elsewhere := diskDesk(t)
	elsewhere.machine.others = map[string]*machine{"sv1": d.machine, "sv2": other}
	elsewhere.write("site.toml", strings.Replace(twoHosts, `address = "local"`, `address = "10.8.1.1"`, 1))
	all, err := snapshots.List(t.Context(), elsewhere.Session, elsewhere.site())
	if err != nil || len(all) != 1 || len(all[0].Nodes) != 3 || all[0].ID != taken.ID {
		t.Errorf("from elsewhere, there are %v: %v", all, err)
	}
	back, err := snapshots.Restore(t.Context(), elsewhere.Session, elsewhere.site(), taken.ID, nil)
	d.must(err)
	if want("then", "then"); back.Nodes != 3 {
		t.Errorf("put back was %+v", back)
	}

	// A host loses its part: that is reported, and the rest can still be restored.
	d.must(os.RemoveAll(filepath.Join(other.dirs.Snapshots("toykat"), taken.ID)))
	if all, err = snapshots.List(t.Context(), d.Session, d.site()); err != nil ||
		strings.Join(all[0].Lacking, " ") != "sv2" || !strings.Contains(d.watch.text(), "on host sv2 is lost") {
		t.Errorf("a part is lost: %v, %v", all, err)
	}
	_, err = snapshots.Restore(t.Context(), d.Session, d.site(), taken.ID, nil)
	d.wantExit(err, problem.Surprise, "host sv2 has lost its part")
	if _, err = snapshots.Restore(t.Context(), d.Session, d.site(), taken.ID, []string{"db"}); err != nil {
		t.Error(err)
	}
	d.must(snapshots.Remove(t.Context(), d.Session, d.site(), []string{taken.ID}))
	d.noSnapshot("removed", d.machine, other)
}

// TestFarSnapshotHalfKept: parts were ready when a run was killed. If a host has kept its part, the
// snapshot is kept. Otherwise it is removed.
func TestFarSnapshotHalfKept(t *testing.T) {
	d, other := farDisks(t)
	taken, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	d.must(err)
	unkept := func(m *machine) {
		t.Helper()
		dir := m.dirs.Snapshots("toykat")
		d.must(os.Rename(filepath.Join(dir, taken.ID), filepath.Join(dir, "."+taken.ID+"-ready")))
	}
	unkept(other)
	d.up() // removes what killed runs left
	again, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	d.must(err)
	all, err := snapshots.List(t.Context(), d.Session, d.site())
	if err != nil || len(all) != 2 || all[0].ID != taken.ID || len(all[0].Nodes) != 3 || all[0].Lacking != nil {
		t.Errorf("there are %v: %v", all, err)
	}
	d.must(snapshots.Remove(t.Context(), d.Session, d.site(), []string{again.ID}))
	unkept(d.machine)
	unkept(other)
	d.Without = []string{"sv2"}
	d.wantExit(snapshots.Remove(t.Context(), d.Session, d.site(), []string{taken.ID}), problem.Usage)
	if ids, err := snapshot.ListPrepared(d.machine.dirs, "toykat"); err != nil || len(ids) != 1 {
		t.Errorf("while a host may have kept its part, others have %v: %v", ids, err)
	}
	d.Without = nil
	d.wantExit(snapshots.Remove(t.Context(), d.Session, d.site(), []string{taken.ID}), problem.Usage)
	d.noSnapshot("never taken", d.machine, other)
}

// TestFarSnapshotKilled: a host is lost at each point of restoring nodes. The same command
// completes the restoring.
func TestFarSnapshotKilled(t *testing.T) {
	for n := 1; ; n++ {
		d, other := farDisks(t)
		d.say("web1", motd, "then")
		d.say("db", motd, "then")
		taken, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
		d.must(err)
		d.say("web1", motd, "now")
		d.say("db", motd, "now")
		other.fault.KillAt(n)
		ctx, cancel := other.fault.KillContext(t.Context())
		_, err = snapshots.Restore(ctx, d.Session, d.site(), taken.ID, nil)
		cancel()
		d.Links.Close()
		other.fault.Revive()
		if err == nil {
			if n < 4 {
				t.Errorf("it was over after %d operations", n)
			}
			return
		}
		d.WaitForLocks = true // the helper may still hold the lock
		d.must(overdue.ReportPending(d.Context(), d.Session, d.site()))
		_, err = snapshots.Restore(t.Context(), d.Session, d.site(), taken.ID, nil)
		d.must(err)
		d.up()
		d.wantSaid("web1", motd, "then")
		d.wantSaid("db", motd, "then")
		d.wantNodes(farUp)
		if t.Failed() {
			t.Fatalf("killed at %d", n)
		}
	}
}
