package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// eventful is a site in which much happens at once: roles that need one another, boot steps,
// volumes and secrets.
var eventful = files{
	"roles/store/role.toml": `
services = ["store.service"]
[[file]]
path = "/etc/systemd/system/store.service"
content = """
[Service]
ExecStart=/usr/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
[[file]]
path = "/etc/store.conf"
template = "store.conf.tmpl"
[[secret]]
name = "token"
[[volume]]
name = "data"
path = "/srv/data"
[[step]]
name = "count"
when = "boot"
script = """
n=$(cat /srv/data/count 2>/dev/null || echo 0)
echo $((n+1)) > /srv/data/count
sleep 0.2
"""
[[health]]
command = ["systemctl", "is-active", "store.service"]
`,
	"roles/store/store.conf.tmpl": "edition 0\n{{range .Nodes}}{{.Name}} {{.Address}}\n{{end}}",
	"roles/user/role.toml": `
[needs]
healthy = ["role=store"]
[[secret]]
name = "token"
[[file]]
path = "/etc/user.conf"
template = "user.conf.tmpl"
[[step]]
name = "asks"
when = "boot"
script = "ping -c 1 -W 5 store0; sleep 0.1"
[[health]]
tcp = 22
`,
	"roles/user/user.conf.tmpl": `token={{secret "token"}}` + "\n",
}

const eventfulSite = `
[network.lan]
subnet = "10.99.%[1]d.0/24"
gateway = "10.99.%[1]d.1"
nat = true
[network.data]
subnet = "10.99.%[2]d.0/24"
[image.debian]
suite = "bookworm"
[defaults]
memory = "128MiB"
[node."store{0..1}"]
id = 10
roles = ["store"]
[node."user{0..1}"]
id = 20
roles = ["user"]
net.lan = "auto"
[secret.token]
generate = 24
`

// seed returns reproducible random numbers.
func seed(t *testing.T) *rand.Rand {
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("ORRERY_TEST_SEED"); text != "" {
		n, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("ORRERY_TEST_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// killed starts a command, kills it with its whole process group after a while, and reports whether
// it was still running.
func (s *site) killed(after time.Duration, args ...string) bool {
	s.Helper()
	cmd, _, _ := s.command(args...)
	wait, err := begin(cmd)
	if err != nil {
		s.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	_ = wait()
	return !cmd.ProcessState.Exited()
}

// TestKill: whenever a run is killed, the next one converges, and down leaves nothing behind.
func TestKill(t *testing.T) {
	const rounds, kills = 9, 6
	t.Parallel()
	s := newSite(t, "it-kill", fmt.Sprintf(eventfulSite, 2, 3), eventful)
	random := seed(t)
	whole := s.run("up").want(0).took
	end := s.run("down").want(0).took
	total := 0
	for round := range rounds {
		for range kills {
			args, span := []string{"up"}, whole
			if random.IntN(4) == 0 {
				args, span = []string{"down"}, end
			}
			if s.killed(time.Duration(random.Float64()*float64(span)), args...) {
				total++
			}
			if random.IntN(3) == 0 { // now there is something else to do
				s.write("roles/store/store.conf.tmpl", fmt.Sprintf("edition %d\n", random.IntN(1000)))
			}
		}
		if round%3 == 2 {
			s.do("down")
			s.wantNoTrace()
			continue
		}
		s.do("up")
		s.settled()
		s.run("status", "--probe").want(0)
		s.run("exec", "all", "--", "systemctl", "is-system-running", "--wait").want(0)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("killed %d runs; a whole one takes %s, down %s", total, whole.Round(time.Millisecond),
		end.Round(time.Millisecond))
	if total < rounds {
		t.Errorf("only %d runs were killed", total)
	}
}

// TestInterrupt: Ctrl-C ends a run in order, the rest is reported, and the next run continues.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-interrupt", fmt.Sprintf(eventfulSite, 12, 13), eventful)
	s.write("roles/user/role.toml", eventful["roles/user/role.toml"]+`
[[step]]
name = "slow"
when = "boot"
script = "sleep 60"
`)
	// The process id of the slow step in the node, or "" if it is not running.
	slow := func() string {
		return strings.TrimSpace(s.run("shell", "user1", "--", "/bin/sh", "-c", "pgrep -fx 'sleep 60' || true").out)
	}
	underWay := func(cmd *exec.Cmd, before string) (wait func() error, step string) {
		wait, err := begin(cmd)
		if err != nil {
			t.Fatal(err)
		}
		s.eventually(func() error {
			if step = slow(); step == "" || step == before {
				return fmt.Errorf("the slow step is not under way anew (%q, before %q)", step, before)
			}
			return nil
		})
		return wait, step
	}
	cmd, _, _ := s.command("up")
	wait, first := underWay(cmd, "")
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = wait()
	cmd, out, errs := s.command("up") // it kills the step of the previous run
	wait, _ = underWay(cmd, first)
	began := time.Now()
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = wait()
	r := result{s, []string{"up"}, cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(began)}
	r.want(130, "interrupted")
	if r.took > 10*time.Second {
		t.Errorf("it ended only after %s", r.took)
	}
	if step := slow(); step != "" {
		t.Errorf("the slow step goes on: %s", step)
	}
	s.run("plan").want(10, "configure +nodes? .*user1: not finished earlier")
	s.write("roles/user/role.toml", eventful["roles/user/role.toml"])
	s.do("up")
	s.settled()
}

// TestKilledBuild: after a killed build, down leaves no process, control group or file of it
// behind.
func TestKilledBuild(t *testing.T) {
	t.Parallel()
	step := "sleep 7" + strconv.Itoa(os.Getpid()) // another layer each time
	s := newSite(t, "it-killbuild",
		"[image.debian]\nsuite = \"bookworm\"\n[node.one]\nid = 1\nroles = [\"slow\"]\n[network.lan]\nsubnet = \"10.99.146.0/24\"\n",
		files{"roles/slow/role.toml": "[[step]]\nname = \"long\"\nwhen = \"build\"\nscript = \"" + step + "\"\n"})
	cmd, _, errs := s.command("up")
	wait, err := begin(cmd)
	if err != nil {
		t.Fatal(err)
	}
	var group string
	s.eventually(func() error {
		for _, path := range glob("/proc/[0-9]*/cmdline") {
			text, _ := os.ReadFile(path)
			if !strings.HasPrefix(string(text), "sleep\x007"+strconv.Itoa(os.Getpid())) {
				continue
			}
			text, _ = os.ReadFile(filepath.Dir(path) + "/cgroup")
			if _, after, ok := strings.Cut(string(text), "orrery-build-"); ok {
				group, _, _ = strings.Cut(strings.Fields(after)[0], "/")
				return nil
			}
		}
		return errors.New("the build step does not run:\n" + errs.String())
	})
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = wait()
	digest, _, _ := strings.Cut(group, "-")
	left := func() []string {
		return glob("/sys/fs/cgroup/orrery-build-"+digest+"*", "/sys/fs/cgroup/*/orrery-build-"+digest+"*",
			filepath.Join(s.dirs.State, "build", digest+"*"), filepath.Join(s.dirs.State, "store", ".staging", digest+"*"))
	}
	if len(left()) == 0 {
		t.Error("the killed build has left nothing, so this shows nothing")
	}
	s.run("down").want(0)
	if found := left(); len(found) > 0 {
		t.Errorf("left of the build:\n  %s", strings.Join(found, "\n  "))
	}
}
