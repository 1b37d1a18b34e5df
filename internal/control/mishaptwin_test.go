package control_test

import (
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/hosts"
	"orrery/internal/control/nodes"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/control/twins"
	"orrery/internal/problem"
)

// TestMishapRestoreTwin: any failure while a backup is restored as a twin is reported. In the end
// the twin is restored, or does not exist.
func TestMishapRestoreTwin(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.writeAll("then")
	to := filepath.Join(t.TempDir(), "backups") + "/"
	_, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.must(err)
	d.writeAll("now")
	restore := func() error {
		_, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir, To: "dev"})
		return err
	}
	list := func() []*hosts.Twin {
		all, _, err := twins.List(t.Context(), d.Session)
		d.must(err)
		return all
	}
	past := d.ofTwin("dev")
	d.try(m, trip{before: func() {
		if len(list()) > 0 {
			d.must(twins.Destroy(t.Context(), d.Session, "dev"))
		}
	}, verb: restore, reached: func() bool {
		all := list()
		return len(all) == 1 && all[0].Running == 2 && past.reads("db", book, "then") && past.reads("web1",
			motd, "then")
	}})
	d.wantWritten("now", "now")
}

// TestMoveAsks: a move in production asks for consent to freeze running nodes, and does not ask
// about others.
func TestMoveAsks(t *testing.T) {
	d, _ := frailDesk(t, true)
	d.write("site.toml", strings.NewReplacer("[site]", "[site]\nproduction = true",
		"roles = [\"web\"]\nhost  = \"sv2\"\n", "roles = [\"web\"]\n", "net.far", "net.lan").Replace(onEach))
	d.up()
	on := func() string {
		status, err := status.Read(t.Context(), d.Session, d.site(), []string{"web1"})
		d.must(err)
		return status.Nodes[0].Host
	}
	from := on()
	to := map[string]string{"sv1": "sv2", "sv2": "sv1"}[from]
	asker := &refuses{}
	d.Confirmer = asker
	_, err := nodes.Move(t.Context(), d.Session, d.site(), []string{"web1"}, to)
	d.wantExit(err, problem.Refused)
	if len(asker.asked) != 1 || !strings.Contains(asker.asked[0].Why, "would be frozen for a moment: web1") || on() != from {
		t.Errorf("asked is %+v, and it is on %s", asker.asked, on())
	}
	d.Confirmer = control.AssumeYes{}
	_, err = sites.Stop(t.Context(), d.Session, d.site(), []string{"web1"})
	d.must(err)
	d.Confirmer = asker
	_, err = nodes.Move(t.Context(), d.Session, d.site(), []string{"web1"}, to)
	d.must(err)
	if len(asker.asked) != 1 || on() != to {
		t.Errorf("of a node that does not run, asked is %+v, and it is on %s", asker.asked[1:], on())
	}
}
