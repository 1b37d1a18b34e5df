package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"orrery/test/hosts"
	"orrery/test/need"
)

// TestHosts: the program works on a host of the test harness as on any machine, and hosts do not
// disturb one another. Here two start the same site at the same time. Nothing is left of it on the
// hosts or on this machine, even if the hosts are removed while it is up.
func TestHosts(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-hosts", "10.77.1.", "10.99.1.")
	s.do("image", "build") // hosts cannot reach package archives
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	control := h.At(1)
	for i := 1; i <= 2; i++ {
		s.carry(h.At(i), "/root/site")
	}
	each := func(what string, do func(name string) error) {
		t.Helper()
		var all errgroup.Group
		for i := 1; i <= 2; i++ {
			all.Go(func() error { return do(hosts.NameOf(i)) })
		}
		if err := all.Wait(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	remote := func(name string, args ...string) (string, error) {
		return control.Output(append([]string{"ssh", name}, args...)...)
	}
	const state = `ip -br link; nft list ruleset; cat /proc/mounts; find /sys/fs/cgroup -name "*orrery*"; ls -A /var/lib/orrery/sites/it-hosts/nodes; pgrep -a lxc || true`
	before := map[string]string{}
	for i := 1; i <= 2; i++ {
		var err error
		if before[hosts.NameOf(i)], err = remote(hosts.NameOf(i), state); err != nil {
			t.Fatal(err)
		}
	}

	each("up", func(name string) error {
		out, err := remote(name, "orrery", "-C", "/root/site", "up")
		if err == nil && !strings.Contains(out, "running") {
			err = fmt.Errorf("it says %s", out)
		}
		return err
	})
	each("its node", func(name string) error {
		out, err := remote(name, "orrery", "-C", "/root/site", "status", "&&", "orrery", "-C", "/root/site", "exec", "all",
			"--", "systemctl", "is-system-running", "--wait")
		if err == nil && !strings.Contains(out, "one | running") {
			err = fmt.Errorf("it says %s", out)
		}
		return err
	})
	each("down", func(name string) error {
		if _, err := remote(name, "orrery", "-C", "/root/site", "down"); err != nil {
			return err
		}
		after, err := remote(name, state)
		if after != before[name] {
			err = fmt.Errorf("it has left something: what was\n%s\nis\n%s", before[name], after)
		}
		return err
	})
	each("up again", func(name string) error {
		_, err := remote(name, "orrery", "-C", "/root/site", "up")
		return err
	})
	supervisor, err := h.SupervisorPID()
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the end of a supervisor that was killed: %v", err)
	}
	if err := h.WaitGone(); err != nil {
		t.Error(err)
	}
}

// carry copies the site directory to a host.
func (s *site) carry(to hosts.Host, dir string) {
	s.Helper()
	from := exec.Command("tar", "-C", s.dir, "-c", ".")
	into := to.Command("/bin/sh", "-c", `mkdir -p "$1" && tar -C "$1" -x`, "sh", dir)
	pipe, err := from.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	into.Stdin = pipe
	if err := from.Start(); err != nil {
		s.Fatal(err)
	}
	if out, err := into.CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	if err := from.Wait(); err != nil {
		s.Fatal(err)
	}
}

// carryBoth copies the site directory to two hosts, either of which can then be the control host.
// SV1 and SV2 in the site file are replaced by how that host reaches them. second is how the first
// host reaches the other.
func (s *site) carryBoth(at func(int) hosts.Host, dir, file, second string) {
	s.Helper()
	for i, addresses := range map[int][]string{1: {"local", second}, 2: {hosts.AddressOf(1), "local"}} {
		s.write("site.toml", strings.NewReplacer("SV1", addresses[0], "SV2", addresses[1]).Replace(file))
		s.carry(at(i), dir)
	}
}

// share copies a file of a site directory from one host to another, as version control does.
func (s *site) share(name string, from, to hosts.Host, dir string) {
	s.Helper()
	text, err := from.Output("cat", filepath.Join(dir, name))
	if err != nil {
		s.Fatal(err)
	}
	into := to.Command("tee", filepath.Join(dir, name))
	into.Stdin = strings.NewReader(text)
	if out, err := into.CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
}

// waiting is what a busy machine adds to the messages of any verb: a login that takes a while.
const waiting = `(?m)^orrery: still waiting for host .*\n`

// ask runs a script on a host, in a site directory, and checks that its output contains all of
// these words. The output ends with the exit status. It has the messages too, except for those of
// a busy machine, so that two outputs can be compared.
func (s *site) ask(on hosts.Host, dir, script string, words ...string) string {
	s.Helper()
	out, err := on.Output("/bin/sh", "-c", "cd "+dir+"; { "+script+"; } 2>&1; echo status $?")
	if err != nil {
		s.Fatal(err)
	}
	out = regexp.MustCompile(waiting).ReplaceAllString(out, "")
	s.wantWords(script, out, words...)
	return out
}

// wantWords wants that what a script has printed has all of these words.
func (s *site) wantWords(script, out string, words ...string) {
	s.Helper()
	for _, w := range words {
		if !strings.Contains(out, w) {
			s.Errorf("%s: %q is not in\n%s", script, w, out)
		}
	}
}
