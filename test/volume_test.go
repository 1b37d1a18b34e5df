package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/text/shell"
)

// TestVolumeMirror mirrors a volume by hand and on a schedule, and reports when the mirror is no
// longer the same.
func TestVolumeMirror(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "archive")
	s := newSite(t, "it-mirrored", `
[network.lan]
subnet = "10.99.92.0/24"
gateway = "10.99.92.1"
[image.debian]
suite = "bookworm"
[defaults]
memory = "96MiB"
[node."n{1..2}"]
id = 11
roles = ["keeper"]
[volume.data]
mirror = "`+archive+`"
every = "90m"
[volume.common]
shared = true
`, keeper)
	heard := s.hears("mirror-failed")
	s.run("volume", "mirror").want(1, "volume data of n1 is missing")
	heard("mirror-failed failed data n1", "mirror-failed failed data n2")
	s.do("up")
	s.sh("n1", "echo one > /srv/data/x; echo old > /srv/data/old; chown nobody /srv/data/x")
	s.run("volume", "ls").want(0, "data +n1 .*failed", "common +@all .* - ")
	s.run("volume", "verify").want(11, "data of n1: .* differs", "x: missing")
	s.run("volume", "mirror", "data").want(0, "data of n1: .* sent", "data of n2")
	s.run("volume", "mirror", "common").want(2, "has no mirror")
	s.run("volume", "verify").want(0, "is the same")
	// of cron, which can run it every hour
	s.run("volume", "ls").want(0, `data +n1 .*`+archive+`/n1 .*ago +done +(in [0-9]+m|cron does not run)`)
	s.sh("n1", "rm /srv/data/old; echo ONE > /srv/data/x")
	if err := os.WriteFile(filepath.Join(archive, "n2", "y"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("volume", "verify", "data").want(11, "x: content")
	s.run("volume", "mirror").want(0)
	s.run("volume", "verify").want(0)
	if got, err := os.ReadFile(filepath.Join(archive, "n1", "old")); err != nil || string(got) != "old\n" {
		t.Errorf("what was removed from the volume is gone from the mirror: %q (%v)", got, err)
	}
	s.Run("Schedule", func(t *testing.T) { mirrorSchedule(s.of(t)) })
	s.Run("Renamed", func(t *testing.T) { renamedNodes(s.of(t)) })
}

// renamedNodes: the data of a renamed node is reported, not silently lost, and the new node can
// take it over.
func renamedNodes(s *site) {
	data := filepath.Join(s.dirs.Volumes(s.name), "data")
	s.run("volume", "ls").want(0, "data +n1 +.* -\n")
	s.edit("site.toml", "n{1..2}", "m{1..2}")
	s.run("plan").want(10, "volume data of n1 is not used by any node, and m1 looks like its successor: orrery volume adopt n1 m1 assigns the data to it",
		"adopt n2 m2")
	s.run("volume", "ls").want(0, "data +m1 +- ", `data +n1 \(unused\) +[0-9]`)
	s.run("volume", "adopt", "n1", "m1").want(0, "m1 now has the data of n1's volume data")
	s.run("up").want(0, "Note: volume data of n2 is not used by any node")
	if got := s.sh("m1", "cat /srv/data/x"); got != "ONE" {
		s.Errorf("m1 has %q", got)
	}
	s.sh("m2", "echo own > /srv/data/own")
	s.run("volume", "adopt", "n2", "m2").want(9, "node m2 runs and uses volume data; nothing was done", "orrery stop m2")
	s.run("volume", "adopt", "m1", "m2").want(9, "node m1 still uses volume data")
	s.do("stop", "m2")
	s.run("volume", "adopt", "n2", "m2").
		want(0, "m2 now has the data of n2", "Its own former data is kept at "+data+"/m2.before")
	s.do("up")
	s.sh("m2", "test -e /srv/data/scheduled")
	s.edit("site.toml", "m{1..2}", "k{1..2}") // while they run
	s.run("plan").want(10, "orrery volume adopt m1 k1 assigns the data to it")
	s.run("volume", "adopt", "m1", "k1").want(0, "node m1: destroy: ok", "k1 now has the data of m1's volume data")
	s.do("up")
	if got := s.sh("k1", "cat /srv/data/x"); got != "ONE" {
		s.Errorf("k1 has %q", got)
	}
	s.run("journal").want(0, "volume adopt m1 k1")
	marks := "touch log; mkdir -p dir/in; touch dir/in/x; chattr +a log dir/in 2>/dev/null && chattr +i x dir ."
	if out, err := sh("cd " + data + "/k1 && { " + marks + "; } || echo no file system for that"); err != nil ||
		strings.Contains(out, "no file") {
		s.Logf("nothing can be marked as immutable: %v %s", err, out)
	}
	s.run("down", "--volumes", "--yes-volumes", s.name).want(0, "deleted permanently")
	if left, _ := filepath.Glob(data + "/*"); len(left) > 0 {
		s.Errorf("left are %q", left)
	}
}

// mirrorSchedule: what up schedules works when run by hand, and down removes it.
func mirrorSchedule(s *site) {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		s.Skip("systemd runs this machine: scenarios/metal tries its timers")
	}
	table := "/etc/cron.d/orrery-" + s.name
	text, err := os.ReadFile(table)
	if err != nil {
		s.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	_, command, ok := strings.Cut(lines[len(lines)-1], " root ")
	if !ok || !strings.HasSuffix(strings.Split(lines[len(lines)-1], " root ")[0], " * * * *") {
		s.Fatalf("the table is\n%s", text)
	}
	s.sh("n2", "echo new > /srv/data/scheduled")
	if out, err := sh("env -i " + lines[2] + " " + strings.ReplaceAll(command, `\%`, "%")); err != nil {
		s.Errorf("%s: %v\n%s", command, err, out)
	}
	s.run("volume", "verify").want(0)
	s.edit("site.toml", `every = "90m"`, "")
	s.do("up")
	if _, err := os.Stat(table); err == nil {
		s.Error("what is no longer mirrored is still scheduled")
	}
	s.edit("site.toml", "shared = true", "shared = true\nmirror = \"/x\"\nevery = \"1h\"")
	routineSchedule(s, table)
	s.do("down")
	if _, err := os.Stat(table); err == nil {
		s.Error("the schedule outlived the site")
	}
}

// routineSchedule: a backup and a watch that up schedules work when cron's lines are run by hand. A
// node that does not run is alerted of once, and once more when it runs again.
func routineSchedule(s *site, table string) {
	dir := s.TempDir()
	s.add(fmt.Sprintf(`
[backup]
to = "%[1]s/backups"
every = "1d"
at = "03:00"
keep = 1
[watch]
every = "1m"
[alert]
user = "root"
command = ["/bin/sh", "-c", "cat >> %[1]s/alerts"]
on = ["node-unhealthy", "backup-failed"]
`, dir))
	s.do("up")
	s.run("status").want(0, "no backup yet\n")
	run := func(part string) {
		s.Helper()
		line, err := sh(fmt.Sprintf("sed -n \"s/.* root \\(.*'routine' '%s'.*\\)/\\1/p\" %s", part, table))
		if err != nil || line == "" {
			s.Fatalf("no timer for %s: %v", part, err)
		}
		line = shell.Quote(strings.ReplaceAll(line, `\%`, "%"))
		if out, err := sh("env -i PATH=" + host.Path + " /bin/sh -c " + line); err != nil {
			s.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	run("backup")
	s.run("status").want(0, "last backup (now|[0-9]+ s ago)\n")
	s.run("status", "--json").want(0, `"routine": "backup"`, `"made": "`+dir+`/backups@`)
	s.run("backup", "ls", dir+"/backups").want(0, s.name)
	s.do("stop", "n1")
	for range 3 {
		run("watch")
	}
	s.do("start", "n1")
	run("watch")
	s.eventually(func() error {
		text, _ := os.ReadFile(dir + "/alerts")
		var got []string
		for line := range strings.Lines(string(text)) {
			var e struct{ Event, Result, Node, Subject string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return err
			}
			got = append(got, strings.Join([]string{e.Event, e.Result, e.Node, e.Subject}, " "))
		}
		want := []string{"node-unhealthy unhealthy n1 node n1", "node-unhealthy recovered n1 node n1"}
		if !slices.Equal(got, want) {
			return fmt.Errorf("alerted was %q, want %q", got, want)
		}
		return nil
	})
}
