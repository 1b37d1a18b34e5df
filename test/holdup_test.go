package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/test/need"
)

// A holdUp is a way in which a member tries to stop his own call while it holds a lock.
type holdUp struct {
	name   string
	script string // the member's script, with $attack, $call, which makes a twin, and $ms, the time of the attack
	before string // done by root before, as the member could on another host
	group  string // a control group of the member in which the call begins, or ""
}

// holdUps are all known ways.
func holdUps(t *testing.T) []holdUp {
	all := []holdUp{
		{name: "a full pipe", script: `$attack unread $call`},
		{name: "^S", script: `$attack flow $ms $call`},
		{name: "endless input", script: `sleep 300 | $call`},
		{name: "a file that swallows", script: `$call > $D/swallow/out 2>&1`,
			before: `mkdir -p $D/swallow; $attack swallow $D/swallow & sleep 0.5`},
		{name: "sudo stopped", script: `$call & sleep 0.$ms; kill -STOP $!; sleep 300`},
		{name: "idle scheduling", script: `exec chrt -i 0 ionice -c 3 $call`},
	}
	for range 3 {
		all = append(all, holdUp{name: "^Z", script: "$attack suspend $ms $call"})
	}
	for group, freeze := range freezers(t) {
		all = append(all, holdUp{name: "frozen in " + group,
			script: fmt.Sprintf("$attack freeze %s/%s $ms $call", group, freeze), group: group})
	}
	return all
}

// TestHoldUp: a member who does everything possible to stop his own call delays no other user. The
// call runs to its end, and root changes other sites all the time. A member cannot do to his call
// what one process can do to another. It runs alone, because it relies on there being only one site
// when it names none, makes control groups by name, and depends on the lock of the machine's
// networks.
//
// Promise (Members): A member blocks no run of anyone else, whatever they do to their call; `^Z`
// does not stop it. With control/members.TestRelay, control/members.TestRelayKilled,
// host/cgroup.TestEnter, host.TestOwnThread, host.TestKillable.
//
// Promise (Members): A program of the site file gets nothing from a member's input; `shell` has the
// member's terminal. With test.TestMember.
func TestHoldUp(t *testing.T) {
	attack := need.Attack(t)
	s := newSite(t, "it-holdup", `
[twin]
members = ["bob"]
[network.lan]
subnet = "10.99.150.0/24"
[image.debian]
suite = "bookworm"
[secret.key]
command = ["/bin/sh", "-c", "cat > /dev/null; echo value"]
[node.one]
id = 1
roles = ["holder"]
`, files{"roles/holder/role.toml": "[[secret]]\nname = \"key\"\n"})
	other := newSite(t, "it-holdup2", `
[network.lan]
subnet = "10.99.151.0/24"
[image.debian]
suite = "bookworm"
[node.two]
id = 2
`, nil)
	s.do("up")
	other.do("up")
	h := newHouse(s)
	twin := s.dirs.Journal("it-holdup.dev")
	gone := func(s *site) {
		s.eventually(func() error {
			if _, err := os.Lstat(s.dirs.Site("it-holdup.dev")); err != nil {
				return nil //nolint:nilerr // it is gone
			}
			return errors.New(s.run("--force", "twin", "destroy", "dev").errs)
		})
	}
	const call = "; call=\"$orrery twin create it-holdup dev --expires 1h\"; "
	for i, a := range holdUps(t) {
		t.Run(a.name, func(t *testing.T) {
			s, other := s.of(t), other.of(t)
			defer gone(s)
			// A call that is stopped before it has begun holds no lock, so it is tried again later.
			for ms, begun := 100+40*(i%3), false; !begun; ms *= 2 {
				if ms > 5000 {
					t.Fatal("the call does not begin")
				}
				end := h.begin("bob", "attack="+attack+"; "+a.before, fmt.Sprintf("attack=%s; ms=%d", attack, ms)+call+a.script,
					a.group)
				if begun = written(twin, `"kind":"begin"`, 4*time.Second); begun {
					began := time.Now()
					other.do("restart", "two")
					if took := time.Since(began); took > 20*time.Second {
						t.Errorf("root waited %v", took)
					}
					if !written(twin, `"kind":"end","result":"done"`, 30*time.Second) {
						t.Error("the call does not go on")
					}
				}
				end()
			}
		})
	}
	r := h.as("bob", "attack="+attack+call+"$attack meddle $call").want(0, `(?m)^([3-9]|\d\d+) processes`)
	if strings.Contains(r.out, "process ") {
		t.Errorf("a member can do to his call\n%s", r.out)
	}
	gone(s)
}

// written reports whether a text appears in a file within a time.
func written(path, what string, within time.Duration) bool {
	for began := time.Now(); time.Since(began) < within; time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), what) {
			return true
		}
	}
	return false
}

// freezers makes control groups that a member may change, as systemd lets users change theirs. It
// returns the freezer file of each.
func freezers(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for root, freeze := range map[string]string{
		"/sys/fs/cgroup/freezer": "freezer.state FROZEN", "/sys/fs/cgroup/unified": "cgroup.freeze 1",
		"/sys/fs/cgroup": "cgroup.freeze 1",
	} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue
		}
		group := filepath.Join(root, "it-holdup")
		if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Rmdir(group) })
		all[group] = freeze
	}
	return all
}

// begin runs a script as a user, in a control group of that user, after root has run another
// script. It returns a function that stops both.
func (h *house) begin(who, before, script, group string) (end func()) {
	h.Helper()
	const enter = `mount --bind $D/etc /etc; cd /; eval "$3"
if [ "$4" ]; then chown -R "$1" "$4"; echo $$ > "$4/cgroup.procs"; fi
exec setpriv --reuid "$1" --regid "$1" --init-groups --reset-env /bin/sh -uc "cd $D/home-$1; $2"`
	script = "orrery=" + h.dir + "/prefix/bin/orrery-member D=" + h.dir + "; " + script
	cmd := exec.Command("unshare", "--mount", "/bin/sh", "-eu", "-c", enter, "sh", who, script, before, group)
	cmd.Env = append(os.Environ(), "D="+h.dir)
	h.must(cmd.Start())
	return func() {
		for file, value := range map[string]string{"freezer.state": "THAWED", "cgroup.freeze": "0"} {
			if group != "" {
				_ = os.WriteFile(filepath.Join(group, file), []byte(value), 0) // the files of both versions
			}
		}
		for _, pid := range family(cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait()
	}
}

// family returns a process and its descendants that still have it as an ancestor.
func family(pid int) []int {
	all := []int{pid}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				all = append(all, family(child)...)
			}
		}
	}
	return all
}
