package lxc

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// squat makes an unprivileged user of the host bind the abstract name of a container's command
// socket. When the test ends, the attacker's input is closed, and so the attacker ends.
func squat(t *testing.T, attack, name string) {
	t.Helper()
	cmd := exec.Command(attack, "squat", name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the attacker is not ready: %q, %v", line, err)
	}
}

// TestMonitorsNameTaken: a node starts, runs commands and stops while an unprivileged user of the
// host has bound the name of LXC's monitor socket. The monitor uses no name in the host's network
// namespace.
//
// Promise (What nodes may do to the host): A command enters a node and nothing else, whoever
// answers on the host; values of `[env]` are on no command line. With host/enter.TestHold.
//
// Promise (Other users of the host): They cannot answer in the place of LXC's monitor or a build,
// or keep one from starting. With image.TestScratchNameTaken.
func TestMonitorsNameTaken(t *testing.T) {
	g := newGround(t)
	n := g.Node("squatted", 146)
	must(t, g.Create(t.Context(), n))
	ref := engine.RefOf(n)
	c := g.container(ref)
	socket := filepath.Join(c.Path(), c.name, "command")
	squat(t, need.Attack(t), socket)
	must(t, g.Start(t.Context(), ref))
	out, err := host.Output(t.Context(), g.Runner(ref), host.Command{Args: []string{"cat", "/etc/hostname"}}, 1<<10)
	if err != nil || string(out) != "squatted\n" {
		t.Errorf("a command in the node: %q, %v", out, err)
	}
	names, err := os.ReadFile("/proc/net/unix")
	must(t, err)
	if n := bytes.Count(names, []byte("@"+socket)); n != 1 {
		t.Errorf("the host has the name %d times, with the attacker's", n)
	}
	must(t, g.Destroy(t.Context(), ref))
}

// TestSystemCalls: no node can create an AF_VSOCK socket by any system call, not even a privileged
// one. System calls that the node's spec allows work.
//
// Promise (What nodes may do to the host): No node has an AF_VSOCK socket, by whatever call, unless
// it asks for `io_uring` or `socketcall`. With host/seccomp.TestFilter, host/seccomp.TestPolicy.
func TestSystemCalls(t *testing.T) {
	g := newGround(t)
	attack := need.Attack(t)
	for _, c := range []struct {
		name string
		set  func(*spec.Node)
		open []string
	}{
		{"plain", func(*spec.Node) {}, nil},
		{"privileged", func(n *spec.Node) { n.Privileged = true }, nil},
		{"asking", func(n *spec.Node) { n.Syscalls = []string{site.IOUring, site.Socketcall} },
			[]string{"io_uring", "i386 socketcall"}},
	} {
		n := g.Node("calls"+c.name, 147)
		c.set(n)
		ref := engine.RefOf(n)
		must(t, g.Create(t.Context(), n))
		must(t, g.Start(t.Context(), ref))
		program, err := os.ReadFile(attack)
		must(t, err)
		const unit = "[Service]\nType=oneshot\nExecStart=/opt/attack vsock\nStandardOutput=file:/run/attack\n"
		must(t, g.Runner(ref).Put(t.Context(), host.File{Path: "/opt/attack", Content: program, Mode: 0o755},
			host.File{Path: "/etc/systemd/system/attack.service", Content: []byte(unit), Mode: 0o644}))
		// Run it as a command, and as a service, which is started by init and not by the engine.
		for _, script := range []string{"/opt/attack vsock", "systemctl start attack && cat /run/attack"} {
			out, err := host.Output(t.Context(), g.Runner(ref), host.Command{Args: []string{"sh", "-c", script}}, 1<<16)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			tried := 0
			for line := range strings.Lines(string(out)) {
				way, how, _ := strings.Cut(strings.TrimSpace(line), ": ")
				wanted := slices.Contains(append([]string{"socket of IPv4", "i386 socket of IPv4"}, c.open...), way)
				if open := how == "open"; open != wanted {
					t.Errorf("%s: %s: %s: %s", c.name, script, way, how)
				}
				tried++
			}
			if tried != 9 {
				t.Errorf("%s: %d ways were tried: %s", c.name, tried, out)
			}
		}
		must(t, g.Destroy(t.Context(), ref))
	}
}
