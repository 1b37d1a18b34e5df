package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A taken snapshot is an element of the output of `orrery snapshot --json`.
type taken struct {
	ID    string
	Pause float64 `json:"pause_seconds"`
	Skew  float64 `json:"skew_seconds"`
}

func (s *site) snapshot(args ...string) taken {
	s.Helper()
	var t taken
	if err := json.Unmarshal(replied(s.do(append([]string{"snapshot", "--json"}, args...)...)), &t); err != nil {
		s.Fatal(err)
	}
	return t
}

// keeper is a role with data of each node, shared data, and a health check that detects bad data.
var keeper = files{"roles/keeper/role.toml": `
[[volume]]
name = "data"
path = "/srv/data"
[[volume]]
name = "common"
path = "/srv/common"
exclusive = false
[[health]]
command = ["test", "!", "-e", "/srv/data/bad"]
timeout = "10s"
within = "10s"
`}

// TestSnapshot takes snapshots of eight nodes and restores them.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-snapshot", `
[network.lan]
subnet = "10.99.91.0/24"
gateway = "10.99.91.1"
[image.debian]
suite = "bookworm"
[defaults]
memory = "96MiB"
[node."n{1..8}"]
id = 11
roles = ["keeper"]
[volume.common]
shared = true
`, keeper)
	s.do("up")
	s.Run("Pause", func(t *testing.T) { snapshotPause(s.of(t)) })
	s.Run("Restore", func(t *testing.T) { snapshotRestore(s.of(t)) })
	s.Run("Undone", func(t *testing.T) { snapshotUndone(s.of(t)) })
	s.Run("Killed", func(t *testing.T) { snapshotKilled(s.of(t)) })
}

// snapshotPause: nodes are frozen for less than 200 ms, all at the same moment.
func snapshotPause(s *site) {
	shortest := s.snapshot()
	for range 4 {
		if next := s.snapshot(); next.Pause < shortest.Pause {
			shortest = next
		}
	}
	s.Logf("pause %.1f ms, skew %.1f ms", shortest.Pause*1000, shortest.Skew*1000)
	if shortest.Pause <= 0 || shortest.Pause > 0.2 || shortest.Skew > shortest.Pause {
		s.Errorf("the shortest pause of five is %.0f ms, with a skew of %.0f ms", shortest.Pause*1000, shortest.Skew*1000)
	}
	// A counter that is written first to the private layer and then to the volume differs by at
	// most one everywhere.
	s.sh("n1", `nohup sh -c 'i=0; while [ ! -e /root/stop ]; do i=$((i+1)); echo $i > /root/.a; mv /root/.a /root/a; echo $i > /srv/data/.b; mv /srv/data/.b /srv/data/b; done' >/dev/null 2>&1 &
while [ ! -e /srv/data/b ]; do sleep 0.1; done`)
	for range 5 {
		id := s.snapshot("n1", "n2").ID
		at := filepath.Join(s.dirs.Snapshots(s.name), id)
		a, b := number(s, at+"/nodes/11/upper/root/a"), number(s, at+"/volumes/data/n1/b")
		if a != b && a != b+1 {
			s.Errorf("the private layer is at %d and the volume at %d", a, b)
		}
	}
	s.sh("n1", "touch /root/stop")
	ids := strings.Fields(s.do("snapshot", "ls"))
	if len(glob(s.dirs.Snapshots(s.name)+"/*")) != 10 || !strings.Contains(strings.Join(ids, " "), shortest.ID) {
		s.Errorf("ls tells %q", ids)
	}
	s.run("snapshot", "rm", shortest.ID).want(0)
	s.run("snapshot", "rm", shortest.ID).want(2, `no snapshot ".*" of `)
	s.run("snapshot", "restore", "never", "--yes-restore", s.name).want(2, `no snapshot ".*" of `)
	s.run("journal").want(0, "orrery .* snapshot rm "+shortest.ID)
}

func number(s *site, path string) int {
	s.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// state returns what nodes have written, in all the places where they can.
func (s *site) written(nodes ...string) string {
	s.Helper()
	var all []string
	for _, n := range nodes {
		all = append(all, n+": "+s.sh(n,
			"cat /root/x /srv/data/x /srv/common/x; stat -c '%U %a' /root/x; grep -c . /etc/hostname; systemctl is-system-running --wait"))
	}
	return strings.Join(all, "\n")
}

func snapshotRestore(s *site) {
	const write = `for f in /root/x /srv/data/x /srv/common/x; do echo %s > $f; done`
	s.do("exec", "all", "--", "sh", "-c", fmt.Sprintf(write, "before")+"; chown nobody /root/x; chmod 640 /root/x")
	before := s.written("n1", "n8")
	id := s.snapshot().ID
	spoil := fmt.Sprintf(write, "after") + "; chown root /root/x; rm -r /etc/hostname /srv/data/x; echo x > /etc/new"
	s.do("exec", "all", "--", "sh", "-c", spoil)
	inits := s.init("n3")
	s.run("snapshot", "restore", id).want(9, "nothing was done", "--yes-restore it-snapshot")
	s.run("snapshot", "restore", id, "n1", "n2", "--yes-restore", s.name).
		want(0, "common: node n. uses it, too", "2 nodes as in snapshot")
	if got := s.written("n1"); !strings.Contains(got, "before\nbefore\nafter\n") {
		s.Errorf("n1 has %s", got)
	}
	if s.init("n3") != inits {
		s.Error("n3 was started anew")
	}
	s.run("snapshot", "restore", id, "--yes-restore", s.name).want(0)
	if got := s.written("n1", "n8"); got != before {
		s.Errorf("there is\n%s\nwant\n%s", got, before)
	}
	s.settled()
	// Even a destroyed node is restored, on the layers that it had at that time.
	s.do("down", "n4")
	s.run("snapshot", "restore", id, "n4", "--yes-restore", s.name).want(0)
	if got := s.written("n4"); !strings.Contains(got, "before\nbefore") {
		s.Errorf("n4 has %s", got)
	}
	s.do("up")
	s.settled()
}

// snapshotUndone: if the restored state is unhealthy, everything is put back as it was before.
func snapshotUndone(s *site) {
	s.sh("n1", "touch /srv/data/bad")
	id := s.snapshot("n1", "n2").ID
	s.sh("n1", "rm /srv/data/bad; echo later > /root/x; echo later > /srv/data/x")
	s.run("snapshot", "restore", id, "--yes-restore", s.name).want(7, "the previous state was restored")
	if got := s.sh("n1", "cat /root/x /srv/data/x; ls /srv/data"); !strings.HasPrefix(got, "later\nlater\n") ||
		strings.Contains(got, "bad") {
		s.Errorf("n1 has %s", got)
	}
	s.do("up")
	s.settled()
	if left := glob(s.dirs.Site(s.name)+"/nodes/*/private/.*aside", s.dirs.Site(s.name)+"/volumes/*/.*",
		s.dirs.Site(s.name)+"/restoring.json"); len(left) > 0 {
		s.Errorf("left is %v", left)
	}
}

// snapshotKilled: however a run ends, nodes continue, and nothing incomplete is kept.
func snapshotKilled(s *site) {
	before := len(glob(s.dirs.Snapshots(s.name) + "/*"))
	whole := 0
	for range 10 {
		cmd, _, _ := s.command("snapshot")
		wait, err := begin(cmd)
		if err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Duration(20+rand.IntN(180)) * time.Millisecond)
		_ = cmd.Process.Signal(syscall.SIGKILL)
		if wait() == nil {
			whole++
		}
		s.eventually(func() error { return wantStatus(s.run("status"), 0) })
	}
	s.snapshot("n1")
	if left := glob(s.dirs.Snapshots(s.name) + "/.*"); len(left) > 0 {
		s.Errorf("left is %v", left)
	}
	if now := len(glob(s.dirs.Snapshots(s.name)+"/*")) - before; now < whole+1 {
		s.Errorf("%d snapshots were finished, and %d are there", whole+1, now)
	}
	// A killed restore is finished by the next one, whose undo leads to the state before the first.
	id := s.snapshot().ID
	s.do("exec", "all", "--", "sh", "-c", "echo last > /srv/data/x")
	for range 5 {
		cmd, _, _ := s.command("snapshot", "restore", id, "--yes-restore", s.name)
		wait, err := begin(cmd)
		if err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond)
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = wait()
	}
	s.run("snapshot", "restore", id, "--yes-restore", s.name).want(0)
	if got := s.sh("n5", "cat /srv/data/x"); got != "before" {
		s.Errorf("n5 has %q", got)
	}
	s.do("up")
	s.settled()
}
