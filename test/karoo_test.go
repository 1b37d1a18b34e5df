package test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestKaroo: the site from which the tests of an operator started runs completely in production. A
// part of it switches to another release and back while the telescope keeps running, and no written
// row is lost.
func TestKaroo(t *testing.T) {
	t.Parallel()
	s := newExample(t, "karoo", "it-karoo", "10.8.71.", "10.99.127.", "10.8.72.", "10.99.136.")
	k := karoo{s}
	began := time.Now()
	plan := s.run("plan", "-v").want(10)
	if n := strings.Count(plan.out, "+ cam-base:"); n > 1 {
		t.Errorf("cam-base is built %d times", n)
	}
	s.run("up").want(0, `portal .*healthy`)
	s.settled()
	s.run("plan", "--probe").want(0, "nothing to do") // what was just started has not drifted
	t.Logf("twelve nodes were up after %s", time.Since(began).Round(time.Second))
	k.whole()

	// What cron runs: the whole chain from the schedule to the shared storage.
	s.sh("observer", "runuser -u cam -- $(grep -o '/opt.*' /etc/cron.d/observe)")
	if got := s.sh("archive", "cat /srv/data/observations; ls /srv/data/captures"); !strings.Contains(got,
		" vela-x receptor1 receptor2 receptor3") || !strings.Contains(got, "-vela-x.json") {
		t.Errorf("the shared storage has %q", got)
	}
	if got := s.sh("archive", "runuser -u postgres -- sh -c \"$(grep -o 'pg_dump.*' /etc/cron.d/dump | tr -d '\\\\')\"; ls /srv/data"); !strings.Contains(got,
		".dump") {
		t.Errorf("nothing was dumped: %q", got)
	}
	for _, node := range []string{"archive", "observer"} {
		if got := s.on(node, "systemctl", "is-active", "cron"); got != "active" {
			t.Errorf("cron of %s is %s", node, got)
		}
	}

	// Release 701 of everything but the telescope.
	telescope := s.init("receptor2") + s.init("subarray")
	before := k.mark("before")
	s.do("stage", "system", "--release", "701")
	if got := s.in(701, "archive", "systemctl is-active cron || true"); got != "inactive" {
		t.Errorf("in quarantine cron is %s", got)
	}
	s.run("switch", "system", "--release", "701").want(9, "--yes-production it-karoo")
	s.do("switch", "system", "--release", "701", "--yes-production", s.name)
	k.whole()
	k.kept(before)
	if got := k.asyncpg(); got != "0.32.0" {
		t.Errorf("at release 701 the monitor has asyncpg %s", got)
	}
	during := k.mark("during")
	s.do("rollback", "--yes-production", s.name)
	k.whole()
	k.kept(before)
	k.kept(during)
	if got := k.asyncpg(); got != "0.31.0" {
		t.Errorf("after the rollback the monitor has asyncpg %s", got)
	}
	if now := s.init("receptor2") + s.init("subarray"); now != telescope {
		t.Error("the telescope was started anew")
	}
	s.settled()
}

type karoo struct{ *site }

// query returns the archive's answer.
func (k karoo) query(text string) string {
	k.Helper()
	return k.on("archive", "runuser", "-u", "postgres", "--", "psql", "-qAt", "-d", "karoo", "-c", text)
}

// mark writes a row, and returns how many rows there are that are not very recent.
func (k karoo) mark(what string) (rows string) {
	k.Helper()
	return k.query("INSERT INTO samples (node, sensor, value) VALUES ('test', 'mark', '" + what + "') RETURNING time")
}

// kept checks that all rows up to a given one exist.
func (k karoo) kept(mark string) {
	k.Helper()
	if got := k.query("SELECT count(*) FROM samples WHERE node = 'test' AND time = '" + mark + "'"); got != "1" {
		k.Errorf("of the row of %s there are %s", mark, got)
	}
}

func (k karoo) asyncpg() string {
	k.Helper()
	return k.on("monitor", "/opt/orrery/venv/bin/python", "-c", "import asyncpg; print(asyncpg.__version__)")
}

// whole checks that samples of all twelve nodes arrive in the archive and on the page.
func (k karoo) whole() {
	k.Helper()
	k.eventually(func() error {
		if got := k.query("SELECT count(DISTINCT node) FROM samples WHERE sensor = 'uptime' AND time > now() - interval '3 s'"); got != "12" {
			return fmt.Errorf("samples come of %s nodes", got)
		}
		page, err := http.Get("http://10.99.127.105/sensors.json")
		if err != nil {
			return err
		}
		defer page.Body.Close()
		text, err := io.ReadAll(page.Body)
		if err == nil && !strings.Contains(string(text), `"receptor3"`) {
			err = fmt.Errorf("the page shows %s", text)
		}
		return err
	})
}
