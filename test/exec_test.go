package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestExec: the commands that work with nodes.
func TestExec(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "id")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Skipf("ssh-keygen: %v %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "it-exec", `
[network.lan]
subnet = "10.99.10.0/24"
gateway = "10.99.10.1"
[image.debian]
suite = "bookworm"
[defaults]
memory = "96MiB"
[node."w{00..07}"]
id = 10
roles = ["ssh"]
[group.some]
nodes = ["w0[0-2]"]
`, files{
		"roles/ssh/role.toml":      "[[file]]\npath = \"/root/.ssh/authorized_keys\"\ntemplate = \"keys\"\nmode = \"0600\"\n[[health]]\ntcp = 22\n",
		"roles/ssh/keys":           string(public),
		"roles/ssh/not-used-there": "x",
	})
	s.do("up")

	r := s.run("exec", "group=some", "--", "sh", "-c", "echo $0 one; echo two >&2; exit 0").
		want(0, "3 of 3 nodes succeeded")
	for _, line := range []string{"w00 | two", "w01 | sh one", "w02 | sh one"} {
		if !strings.Contains(r.out+r.errs, line+"\n") {
			t.Errorf("%q is not in\n%s", line, r.out)
		}
	}
	s.run("exec", "w00,w01,w05", "--", "sh", "-c", "test $(cat /etc/hostname) = w01").
		want(102, "1 of 3 nodes succeeded; failed: w00, w05", `on w00, w05: exit status 1`)
	s.run("exec", "all", "--", "false").want(108)
	s.run("exec", "nobody", "--", "true").want(2, "nobody")
	s.run("exec", "all").want(2)
	s.run("shell", "w03", "--", "sh", "-c", "exit 42").want(42)
	s.run("shell", "w03", "--", "sh", "-c", "kill -9 $$").want(137)
	s.run("shell", "w33", "--", "true").want(2, `no node is called "w33"`)
	if got := s.on("w03", "pwd"); got != "/root" && got != "/" {
		t.Errorf("a command begins in %s", got)
	}
	if got := s.on("w03", "printf", "%s|", "a b", "$HOME", "", "'"); got != "a b|$HOME||'|" {
		t.Errorf("arguments arrive as %s", got)
	}

	t.Run("Many", func(t *testing.T) { many(s.of(t)) })
	s.nowhere().run("__complete", "-C", s.dir, "cp", "w00:/etc/host").want(0, "(?m)^w00:/etc/hostname$")
	t.Run("Copy", func(t *testing.T) { copies(s.of(t)) })

	if got := s.do("query", "w0[12]"); got != "w01\nw02\n" {
		t.Errorf("query: %s", got)
	}
	var inventory map[string]any
	if err := json.Unmarshal([]byte(s.do("inventory", "--list")), &inventory); err != nil || inventory["_meta"] == nil {
		t.Errorf("inventory: %v", err)
	}
	var vars map[string]any
	if err := json.Unmarshal([]byte(s.do("inventory", "--host", "w04")), &vars); err != nil ||
		vars["ansible_host"] != "10.99.10.14" {
		t.Errorf("inventory of w04: %v %v", vars, err)
	}

	config := filepath.Join(t.TempDir(), "ssh.conf")
	if err := os.WriteFile(config, []byte(s.do("ssh-config")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ssh", "-F", config, "-i", key, "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "w06",
		"cat", "/etc/hostname").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "w06" {
		t.Errorf("ssh w06: %v\n%s", err, out)
	}

	quickest := time.Hour
	for n := 0; n < 5 || n < 100 && quickest > 100*time.Millisecond; n++ { // even a busy machine is idle at some time
		quickest = min(quickest, s.run("status").want(0).took)
	}
	t.Logf("status of 8 nodes takes %s", quickest.Round(time.Millisecond))
	if quickest > 100*time.Millisecond {
		t.Errorf("status of 8 nodes takes %s", quickest)
	}
	s.run("logs", "w07").want(0, "journal of node w07")
	s.run("logs", "group=some", "ssh.service", "-n", "3").want(0, "(?m)^w00 \\| ==> journal of node w00$", `(?m)^w02 \| `)
	s.run("journal").want(0, "orrery -C .* up", "ended after .* done")
}

func copies(s *site) {
	here := s.TempDir()
	big := strings.Repeat("0123456789abcdef\n", 1<<16)
	for name, text := range map[string]string{"a file": "text\n", "big": big, "tree/deep/x": "x"} {
		path := filepath.Join(here, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path, []byte(text), 0), os.Chmod(path, 0o640)); err != nil {
			s.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(here, name) }
	s.do("cp", at("a file"), "w00:/tmp/other name")
	if got := s.on("w00", "stat", "-c", "%a %U %s", "/tmp/other name"); got != "640 root 5" {
		s.Errorf("the copy is %s", got)
	}
	s.do("cp", at("a file"), at("big"), at("tree"), "w00:/srv/new/")
	s.on("w00", "test", "-f", "/srv/new/tree/deep/x")
	s.do("cp", "w00:/srv/new", "w01:/srv/moved") // from node to node
	s.do("cp", "w01:/srv/moved/big", at("back"))
	if text, err := os.ReadFile(at("back")); err != nil || string(text) != big {
		s.Errorf("%d of %d bytes came back (%v)", len(text), len(big), err)
	}
	s.run("cp", at("big"), at("a file"), "group=some:/srv/all/").want(0, "3 of 3 nodes succeeded")
	s.run("cp", "group=some:/srv/all", "w0[1-2]:/srv/all/big", at("each")).
		want(2, "the two selectors choose different nodes")
	s.run("cp", "group=some:/srv/all", at("each")).want(0, "3 of 3")
	for _, node := range []string{"w00", "w01", "w02"} {
		if text, err := os.ReadFile(at("each/" + node + "/all/big")); err != nil || string(text) != big {
			s.Errorf("%d of %d bytes came from %s (%v)", len(text), len(big), node, err)
		}
	}
	s.run("cp", "w0[0-3]:/srv/all/big", "w04:/srv/names").
		want(101, "3 of 4 nodes succeeded; failed: w03", `w03 \| .*the file does not exist`)
	s.on("w04", "test", "-s", "/srv/names/w02/big")
	s.run("cp", "--json", at("big"), "w05:/srv/").want(0, `"node":"w05","status":0`)
	s.run("cp", "w00:/no/such/file", here).want(1, "no/such/file", "the file does not exist")
	s.run("cp", "w99:/etc/passwd", here).want(2, `no node is called "w99"`)
	s.on("w00", "truncate", "-s", "64G", "/srv/endless")
	if err := os.WriteFile(at("endless"), nil, 0o644); err != nil {
		s.Fatal(err)
	}
	if err := os.Truncate(at("endless"), 64<<30); err != nil {
		s.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		for _, from := range []string{at("endless"), "w00:/srv/endless"} {
			s.interruptedCopy(from, signal)
		}
	}
}

// interruptedCopy interrupts a running copy into a node. Nothing is left of it there, and no
// content is printed.
func (s *site) interruptedCopy(from string, signal syscall.Signal) {
	s.Helper()
	s.on("w01", "mkdir", "-p", "/srv/into")
	cmd, out, errs := s.command("cp", from, "w01:/srv/into/")
	wait, err := begin(cmd)
	if err != nil {
		s.Fatal(err)
	}
	s.eventually(func() error {
		if s.run("shell", "w01", "--", "sh", "-c", "test -s /srv/into/.orrery.*/endless").status != 0 {
			return errors.New("the copy does not begin")
		}
		return nil
	})
	_ = cmd.Process.Signal(signal)
	_ = wait()
	if status := cmd.ProcessState.ExitCode(); signal == syscall.SIGINT && status != 130 {
		s.Errorf("interrupted, it ends with %d\n%s", status, errs)
	}
	if out.Len() > 0 || errs.Len() > 500 || strings.ContainsRune(errs.String(), 0) {
		s.Errorf("it printed %d bytes and, as errors, %.500q", out.Len(), errs)
	}
	s.eventually(func() error {
		if left := s.on("w01", "ls", "-A", "/srv/into"); left != "" {
			return fmt.Errorf("%s of %s: left is %s", signal, from, left)
		}
		return nil
	})
}

// many: commands for many nodes at once, and their results on each.
func many(s *site) {
	say := func(text string, args ...string) result {
		s.Helper()
		cmd, out, errs := s.command(args...)
		cmd.Stdin = strings.NewReader(text)
		_ = cmd.Run()
		return result{s, args, cmd.ProcessState.ExitCode(), out.String(), errs.String(), 0}
	}
	long := strings.Repeat("a line of many\n", 100_000)
	say(long, "exec", "w00", "--", "wc", "-c").want(0, `w00 \| 1500000`)
	say(long, "exec", "w0[0-3]", "--", "sh", "-c", "test $(hostname) = w01 || wc -c").
		want(0, `w00 \| 1500000`, `w03 \| 1500000`, "4 of 4")
	say("x", "exec", "w0[0-3]", "--parallel", "2", "--", "cat").want(2, "< /dev/null")

	r := s.run("exec", "all", "--json", "--timeout", "2s", "--", "sh", "-c",
		"echo out; echo err >&2; case $(hostname) in w01) exit 3;; w02) exec sleep 1234;; esac").want(102)
	var all []struct {
		Node, Error, Output, Errors string
		Status                      int
	}
	if err := json.Unmarshal(replied(r.out), &all); err != nil || len(all) != 8 {
		s.Fatalf("%v\n%s", err, r.out)
	}
	for _, one := range all {
		want := map[string]int{"w01": 3, "w02": -1}[one.Node]
		if one.Status != want || one.Output != "out\n" || one.Errors != "err\n" || (one.Error != "") != (want < 0) {
			s.Errorf("%+v", one)
		}
	}
	s.eventually(func() error {
		if s.run("exec", "w02", "--", "pgrep", "-f", "sleep 1234").status == 0 {
			return errors.New("a command goes on whose time was over")
		}
		return nil
	})

	cmd, _, errs := s.command("logs", "w00,w03", "-f")
	out := &lines{}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	followed := func(node string) bool {
		return regexp.MustCompile(node + ` \| .*said while it was followed`).MatchString(out.text())
	}
	s.eventually(func() error { // it does not report when it has started to follow
		s.do("exec", "w00,w03", "--", "logger", "said while it was followed")
		if !followed("w00") || !followed("w03") {
			return errors.New("nothing is followed")
		}
		return nil
	})
	if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
		s.Errorf("logs -f ended with %v: %s", err, errs)
	}
}
