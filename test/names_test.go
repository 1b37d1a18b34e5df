package test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNames: programs of a host find nodes by name while their site is up, if the administrator wants
// that. All commands here see a copy of /etc, in mount namespaces of their own.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-names", `
[network.lan]
subnet  = "10.99.187.0/24"
gateway = "10.99.187.1"
[image.debian]
suite = "bookworm"
[node.web]
id = 11
`, nil)
	s.keepIn(newHome(t, "names"))
	// Else each call would mount one of its own.
	err := errors.Join(os.MkdirAll(s.dirs.Run, 0o755), unix.Mount("tmpfs", s.dirs.Run, "tmpfs", 0, "mode=755"))
	if err != nil {
		t.Fatal(err)
	}
	etc := filepath.Join(t.TempDir(), "etc")
	if out, err := exec.Command("cp", "-a", "/etc", etc).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.program = filepath.Join(t.TempDir(), "orrery")
	script := fmt.Sprintf("#!/bin/sh\nexec unshare --mount --propagation slave sh -c "+
		"'mount --bind %s /etc && exec \"$@\"' - \"${RUN:-%s}\" \"$@\"\n", etc, program)
	if err := os.WriteFile(s.program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	resolve := func() string {
		cmd := exec.Command(s.program, "hosts", "web.it-names")
		cmd.Env = append(os.Environ(), "RUN=getent")
		out, _ := cmd.Output()
		return strings.Join(strings.Fields(string(out)), " ")
	}
	before, err := os.ReadFile(filepath.Join(etc, "hosts"))
	if err != nil {
		t.Fatal(err)
	}

	s.run("names").want(0, "has no names of nodes")
	s.run("names", "--install").want(0, "No site with nodes")
	s.do("up")
	s.run("names").want(0, `it-names +10\.99\.187\.11 +web\.it-names`)
	if got := resolve(); got != "10.99.187.11 web.it-names" {
		t.Errorf("getent hosts: %q", got)
	}
	if c, err := net.Dial("tcp", "10.99.187.11:22"); err != nil { // the host reaches the address
		t.Error(err)
	} else {
		c.Close()
	}
	s.settled()
	s.do("down")
	after, err := os.ReadFile(filepath.Join(etc, "hosts"))
	if got := resolve(); got != "" || err != nil || strings.TrimSpace(string(after)) != strings.TrimSpace(string(before)) {
		t.Errorf("after down, getent hosts: %q; %v\n%s", got, err, after)
	}
}
