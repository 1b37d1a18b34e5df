package test

import (
	"fmt"
	"strings"
	"testing"
)

// TestSlurm: jobs run on all compute nodes with one /home, on a further node that is added, and after
// controller and nodes have been restarted.
func TestSlurm(t *testing.T) {
	t.Parallel()
	s := newExample(t, "slurm", "it-slurm", "10.8.95.", "10.99.195.")
	s.do("up")
	run := func(want ...string) {
		t.Helper()
		s.eventually(func() error { // nodes that were restarted register again
			r := s.run("exec", "head", "--user", "ada", "--", "srun", fmt.Sprintf("-N%d", len(want)), "--immediate=20",
				"hostname")
			for _, node := range want {
				if r.status != 0 || !strings.Contains(r.out, "| "+node+"\n") {
					return fmt.Errorf("status %d, %s%s", r.status, r.out, r.errs)
				}
			}
			return nil
		})
	}
	run("c1", "c2", "c3", "c4")
	s.do("exec", "head", "--user", "ada", "--", "sh", "-c", "cd && echo hello >file && sbatch -o job.out --wrap 'cat file'")
	s.eventually(func() error {
		if out := s.sh("c4", "cat /home/ada/job.out || true"); strings.TrimSpace(out) != "hello" {
			return fmt.Errorf("the job printed %q", out)
		}
		return nil
	})
	s.edit("site.toml", "c{1..4}", "c{1..5}")
	if out := s.run("plan").want(10).out; strings.Contains(out, "recreate") {
		t.Errorf("another node recreates others:\n%s", out)
	}
	s.do("up")
	run("c1", "c2", "c3", "c4", "c5")
	s.do("restart", "head", "c1")
	run("c1", "c2", "c3", "c4", "c5")
	s.run("plan", "--probe").want(0, "nothing to do")
}

// TestPostgres: what is written by the proxy is on the replica and in a dump, a further database is made
// while the database runs, and rows survive a release and the way back.
func TestPostgres(t *testing.T) {
	t.Parallel()
	s := newExample(t, "postgres", "it-postgres", "10.8.96.", "10.99.196.")
	s.do("up")
	write := func(database, statement string) {
		t.Helper()
		s.sh("db2", fmt.Sprintf("PGPASSWORD=$(cat /run/app) psql -h proxy -U app -qAtc '%s' %s", statement, database))
	}
	rows := func(want string) {
		t.Helper()
		s.eventually(func() error {
			const question = "SELECT count(*), pg_is_in_recovery() FROM t"
			r := s.run("exec", "db2", "--", "sh", "-c", "PGPASSWORD=$(cat /run/app) psql -h proxy -p 5433 -U app -qAtc '"+
				question+"' app")
			if got := r.out; !strings.Contains(got, want+"|t\n") {
				return fmt.Errorf("the replica says %q, %s", got, r.errs)
			}
			return nil
		})
	}
	login := func() {
		t.Helper()
		password := strings.TrimSpace(s.on("db1", "cat", "/etc/orrery/secrets/postgresql_password"))
		s.sh("db2", "umask 077; echo '"+password+"' >/run/app")
	}
	login()
	write("app", "CREATE TABLE t AS SELECT generate_series(1, 10)")
	rows("10")
	if out := s.sh("db2", "systemctl start dump && zcat /srv/dumps/*.sql.gz"); !strings.Contains(out, "CREATE TABLE public.t") {
		t.Errorf("the dump is\n%s", out)
	}
	s.edit("site.toml", `["app:app"]`, `["app:app", "more:app"]`)
	if out := s.run("plan").want(10).out; strings.Contains(out, "recreate") {
		t.Errorf("a further database recreates nodes:\n%s", out)
	}
	s.do("up")
	write("more", "SELECT 1")
	s.do("restart", "db1")
	rows("10")

	s.edit("site.toml", "[node.db1]", "[release.1]\n\n[node.db1]")
	s.do("stage", "--release", "1")
	s.do("switch", "--release", "1")
	login()
	write("app", "INSERT INTO t SELECT 11")
	rows("11")
	s.do("rollback")
	rows("11")
}

// TestEpics: process variables are found, archived and simulated in a twin; the limit that an operator
// sets goes along with a release that is proven and back.
func TestEpics(t *testing.T) {
	t.Parallel()
	s := newExample(t, "epics", "it-epics", "10.8.97.", "10.99.197.")
	yes := []string{"--yes-production", "it-epics"}
	s.do("up")
	s.sh("archive", "pv put ioc1:LIMIT 7")
	version := func(want string) {
		t.Helper()
		if got := s.sh("archive", "/opt/orrery/venv/bin/pip list | grep softioc"); !strings.HasSuffix(strings.TrimSpace(got), want) {
			t.Errorf("it runs %s, not %s", got, want)
		}
	}
	limit := func(want string) {
		t.Helper()
		if got := s.sh("archive", "pv get ioc1:LIMIT"); strings.TrimSpace(got) != "ioc1:LIMIT "+want {
			t.Errorf("the limit is %q, not %s", got, want)
		}
	}
	version("4.6.1")
	s.do("stage", "--release", "2026")
	s.run(append([]string{"switch", "--release", "2026", "--confirm-within", "5s"}, yes...)...).want(12)
	s.trialOver()
	s.run("release", "ls").want(0, `2026 +live`)
	version("4.7.2")
	limit("7.0")

	s.do("twin", "create", "it-epics", "try")
	twin := func(args ...string) string { return s.do(append([]string{"--twin", "try"}, args...)...) }
	out := twin("exec", "archive", "--", "pv", "get", "ioc1:VALUE", "ioc1:LIMIT")
	if !strings.Contains(out, "ioc1:LIMIT 50.0") {
		t.Errorf("the twin has %s", out)
	}
	if out := twin("exec", "ioc1", "--", "cat", "/usr/local/lib/ioc/hardware.py"); !strings.Contains(out, "math.sin") {
		t.Errorf("the twin reads the hardware:\n%s", out)
	}
	s.do("twin", "destroy", "try")

	s.sh("archive", "pv put ioc1:LIMIT 8")
	s.do(append([]string{"rollback"}, yes...)...)
	version("4.6.1")
	limit("8.0")
	s.do(append([]string{"down"}, yes...)...)
}
