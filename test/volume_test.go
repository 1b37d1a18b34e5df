package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVolumeMirror mirrors a volume by hand and on a schedule, and tells when the mirror is no longer the same.
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
	s.run("volume", "mirror").want(1, "volume data of n1 is not there")
	s.do("up")
	s.sh("n1", "echo one > /srv/data/x; echo old > /srv/data/old; chown nobody /srv/data/x")
	s.run("volume", "ls").want(0, "data +n1 .*failed", "common +@all .* - ")
	s.run("volume", "verify").want(11, "data of n1: .* differs", "x: missing")
	s.run("volume", "mirror", "data").want(0, "data of n1: .* sent", "data of n2")
	s.run("volume", "mirror", "common").want(2, "has no mirror")
	s.run("volume", "verify").want(0, "is the same")
	s.run("volume", "ls").want(0, `data +n1 .*`+archive+`/n1 .*ago +done +in 1h`)
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
}

// mirrorSchedule: what up schedules does, run by hand, what it is for; and down ends it.
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
	s.do("up")
	s.do("down")
	if _, err := os.Stat(table); err == nil {
		s.Error("the schedule outlived the site")
	}
}
