package control_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/sites"
	"orrery/internal/control/twins"
	"orrery/internal/control/volumes"
	"orrery/internal/problem"
)

// TestVolumes: each volume is listed with its size and its mirror, and unused volumes are marked.
func TestVolumes(t *testing.T) {
	d := diskDesk(t)
	d.up()
	d.say("db", book, "paid")
	rows, orphans, err := volumes.List(t.Context(), d.Session)
	d.must(err)
	if len(rows) != 1 || rows[0].Node != "db" || !rows[0].There || rows[0].Size.Apparent == 0 || rows[0].Orphan ||
		len(orphans) > 0 {
		t.Errorf("%+v, %v", rows, orphans)
	}
	d.write("site.toml", strings.Replace(toykat, "[node.db]", "[node.ledger]", 1))
	rows, orphans, err = volumes.List(t.Context(), d.Session)
	d.must(err)
	if len(rows) != 2 || rows[0].There || !rows[1].Orphan || rows[1].Node != "db" || len(orphans) != 1 {
		t.Errorf("%+v, %v", rows, orphans)
	}
	if names := volumes.FormerNodes(d.Session, d.site()); strings.Join(names, " ") != "db" {
		t.Errorf("the former nodes are %v", names)
	}
}

// TestAdopt: a node that replaces another gets its data, and the former node is destroyed. That is
// refused while the data is in use, and in production without consent.
func TestAdopt(t *testing.T) {
	d := diskDesk(t)
	d.up()
	d.say("db", book, "paid")
	_, err := volumes.Adopt(t.Context(), d.Session, "db", "nobody", nil)
	d.wantExit(err, problem.Usage, "nobody")
	_, err = volumes.Adopt(t.Context(), d.Session, "nobody", "db", nil)
	d.wantExit(err, problem.Usage, "nobody has no volume data that node")
	renamed := strings.Replace(toykat, "[node.db]\nid     = 11", "[node.ledger]\nid     = 12", 1)
	d.write("site.toml", renamed+"[node.db]\nid = 11\nroles = [\"db\"]\n")
	d.up()
	d.say("ledger", book, "nothing yet")
	_, err = volumes.Adopt(t.Context(), d.Session, "db", "ledger", nil)
	d.wantExit(err, problem.Refused, "node db still uses volume archive")

	d.write("site.toml", renamed)
	_, err = volumes.Adopt(t.Context(), d.Session, "db", "ledger", nil)
	d.wantExit(err, problem.Refused, "node ledger runs", "orrery stop ledger")
	_, err = sites.Stop(t.Context(), d.Session, d.site(), []string{"ledger"})
	d.must(err)
	d.fault.Fail("Destroy", "db", 1, nil)
	_, err = volumes.Adopt(t.Context(), d.Session, "db", "ledger", nil)
	d.wantExit(err, problem.Failed, "injected failure")
	done, err := volumes.Adopt(t.Context(), d.Session, "db", "ledger", []string{"archive"})
	d.must(err)
	if len(done) != 1 || done[0].Volume != "archive" || done[0].Kept == "" { // the heir had a volume of its own
		t.Errorf("%+v", done)
	}
	d.up()
	d.wantSaid("ledger", book, "paid")
	d.wantNodes("ledger none running healthy, web1 none running healthy, web2 none running healthy")
}

// TestRemove: a volume that no node uses is deleted. That is refused while a node has it, and without
// consent.
func TestRemove(t *testing.T) {
	d := diskDesk(t)
	d.up()
	d.say("db", book, "paid")
	_, err := volumes.Remove(t.Context(), d.Session, "archive", nil)
	d.wantExit(err, problem.Refused, "volume archive is in use")
	_, err = volumes.Remove(t.Context(), d.Session, "archiv", nil)
	d.wantExit(err, problem.Usage, `no unused volume "archiv"`)

	d.write("site.toml", strings.Replace(toykat, "[node.db]\nid     = 11", "[node.ledger]\nid     = 12", 1))
	_, err = volumes.Remove(t.Context(), d.Session, "archive", nil)
	d.wantExit(err, problem.Refused, "node db still has volume archive", "orrery up")
	d.up()
	_, err = volumes.Remove(t.Context(), d.Session, "archive", []string{"db", "web1"})
	d.wantExit(err, problem.Usage, "no unused volume archive of web1")
	rows, _, err := volumes.List(t.Context(), d.Session)
	d.must(err)
	if len(rows) != 2 {
		t.Errorf("there are %+v", rows)
	}
	gone, err := volumes.Remove(t.Context(), d.Session, "archive", nil)
	d.must(err)
	if len(gone) != 1 || gone[0].Node != "db" {
		t.Errorf("deleted are %+v", gone)
	}
	rows, _, err = volumes.List(t.Context(), d.Session)
	d.must(err)
	if len(rows) != 1 || rows[0].Node != "ledger" {
		t.Errorf("there are %+v", rows)
	}
	_, err = volumes.Remove(t.Context(), d.Session, "archive", nil)
	d.wantExit(err, problem.Refused, "volume archive is in use")
}

// TestMirror: a volume is mirrored on request, and differences and errors are reported.
func TestMirror(t *testing.T) {
	d := diskDesk(t)
	d.up()
	d.say("db", book, "paid")
	var made []volumes.Mirrored
	bring := func(o volumes.MirrorOptions) error {
		made = nil
		return volumes.Mirror(t.Context(), d.Session, o, func(m volumes.Mirrored) { made = append(made, m) })
	}
	d.wantExit(bring(volumes.MirrorOptions{}), problem.Usage, "no volume that a node uses has a mirror")
	d.wantExit(bring(volumes.MirrorOptions{Names: []string{"x"}}), problem.Usage, "volume x")
	to := t.TempDir()
	d.write("site.toml", toykat+"[volume.archive]\nmirror = \""+to+
		"\"\n[hook.page]\non = [\"mirror-failed\"]\ncommand = [\"/bin/true\"]\n")
	gone := filepath.Join(d.dirs.Volumes("toykat"), "archive", "db")
	d.must(os.Rename(gone, gone+"-away"))
	if err := bring(volumes.MirrorOptions{}); err == nil || len(made) > 0 {
		t.Errorf("what is not there was mirrored: %+v", made)
	}
	if waiting, _ := d.Waiting(); len(waiting) != 1 || waiting[0].Name != "hooks-toykat" {
		t.Errorf("the hook was not told: %v", waiting)
	}
	d.must(os.Rename(gone+"-away", gone))
	last := func() *volumes.Mirrored {
		t.Helper()
		rows, _, err := volumes.List(t.Context(), d.Session)
		d.must(err)
		if rows[0].Mirror != filepath.Join(to, "db") || rows[0].Last == nil {
			t.Fatalf("%+v", rows[0])
		}
		return rows[0].Last
	}
	if last().Problem == "" {
		t.Error("what went wrong is not told")
	}
	_, _, err := twins.Create(t.Context(), d.Session, twinOf("toykat", d.dir, "dev"))
	d.must(err)
	d.wantExit(volumes.Verify(t.Context(), d.ofTwin("dev").Session, nil, nil), problem.Refused,
		"volumes of a twin are not mirrored")

	if _, err := exec.LookPath("rsync"); err != nil || os.Geteuid() != 0 {
		t.Skip("only root shuts rsync off from the host")
	}
	compare := func() (all []volumes.Compared) {
		t.Helper()
		d.must(volumes.Verify(t.Context(), d.Session, nil, func(c volumes.Compared) { all = append(all, c) }))
		return all
	}
	d.must(bring(volumes.MirrorOptions{}))
	if len(made) != 1 || made[0].Node != "db" || made[0].Problem != "" || last().Problem != "" {
		t.Errorf("mirrored was %+v", made)
	}
	text, err := os.ReadFile(filepath.Join(to, "db", "book"))
	if err != nil || string(text) != "paid" {
		t.Errorf("%q, %v", text, err)
	}
	if all := compare(); len(all) != 1 || len(all[0].Deviations) > 0 {
		t.Errorf("%+v", all)
	}
	d.must(os.WriteFile(filepath.Join(to, "db", "book"), []byte("owed"), 0o644))
	if all := compare(); len(all) != 1 || len(all[0].Deviations) == 0 {
		t.Errorf("%+v", all)
	}
	d.must(bring(volumes.MirrorOptions{Contents: true}))
	if all := compare(); len(all[0].Deviations) > 0 {
		t.Errorf("%+v", all)
	}
}
