package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"orrery/test/hosts"
	"orrery/test/need"
)

// TestFarHosts: problems with a host that is reached by SSH are reported, each with the host and a
// cure. A host that stops answering or loses power during a command is noticed within ten seconds.
// When it is back, the same command brings it to the declared state.
func TestFarHosts(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	// hosts cannot reach package archives
	newExample(t, "minimal", "it-farbase", "10.77.1.", "10.99.233.").do("image", "build")
	h := hosts.Up(t, hosts.Options{Count: 2, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store"), Disk: 1 << 30})
	control, far := controlPoint{h.At(1), t}, h.At(2)
	sh := func(on hosts.Host, script string) {
		t.Helper()
		if _, err := on.Output("/bin/sh", "-c", script); err != nil {
			t.Fatal(err)
		}
	}

	control.reaches("10.8.1.2")
	const known = "/root/.ssh/known_hosts"
	sh(h.At(1), "cp "+known+" /root/known; sed -i /sv2/d "+known)
	control.run("plan").want(4, "host sv2: its SSH host key is unknown", "ssh 10.8.1.2 once")
	sh(h.At(1), "sed -n s/^sv1,10.8.1.1/10.8.1.2/p /root/known >"+known)
	control.run("plan").want(4, "host sv2: its SSH host key has changed", "ssh-keygen -R")
	sh(h.At(1), "cp /root/known "+known)
	control.reaches("nobody@10.8.1.2")
	control.run("plan").want(4, "host sv2: it refuses the login", "authorized_keys")
	if err := errors.Join(far.AddUser("guest", false), far.AddUser("ops", true)); err != nil {
		t.Fatal(err)
	}
	control.reaches("guest@10.8.1.2")
	control.run("plan").want(4, "host sv2: its login cannot become root without a prompt", "NOPASSWD")
	control.reaches("ops@10.8.1.2")
	sh(far, "head -c 2G /dev/zero >/var/lib/orrery/full || true")
	control.run("plan").want(4, "host sv2: its disk is full", "make room")
	sh(far, "rm /var/lib/orrery/full")

	const running = `two +12 +sv2 +running`
	control.run("up").want(0, running)
	for _, c := range []struct {
		what, seconds  string // each sleeps for a different time, since an unreachable host may sleep on
		befalls, mends func() error
	}{
		{"silent", "1000", func() error { return far.Disconnect(hosts.From) }, far.Reconnect},
		{"without power", "1001", far.Kill, far.Boot},
	} {
		befallen := make(chan time.Time, 1)
		go func() {
			for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
				if _, err := far.Output("pgrep", "-f", "sleep "+c.seconds); err == nil {
					break
				}
			}
			if err := c.befalls(); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			befallen <- time.Now()
		}()
		control.run("exec", "two", "--", "sleep", c.seconds).want(101, "two")
		if noticed := time.Since(<-befallen); noticed > 10*time.Second {
			t.Errorf("that a host is %s is noticed after %s", c.what, noticed)
		}
		if c.what != "silent" {
			control.run("plan").want(1, "host sv2: no answer")
		}
		if err := c.mends(); err != nil {
			t.Fatal(err)
		}
		control.run("up").want(0, "it-far is up|"+running)
		control.run("status").want(0, running)
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			if _, err := far.Output("pgrep", "-f", "sleep "+c.seconds); err != nil {
				t.Logf("%s: what ran there has ended %s after the site was up again", c.what, time.Since(began))
				break
			}
			if time.Since(began) > 30*time.Second {
				t.Errorf("%s: what ran there runs on", c.what)
				break
			}
		}
	}
	// A host is added and removed. Nodes on the other host are not lost.
	before, err := h.At(1).Output("cat", "/root/site/site.toml")
	if err != nil {
		t.Fatal(err)
	}
	control.run("host", "add", "sv1", "local").want(0, "sv1 was added to site.toml")
	control.run("host", "drain", "sv2").want(4, "sv2 is drained", `two stays: it is tied to that host`)
	control.run("host", "ls").want(0, `sv2 +ops@10.8.1.2 .*drained by`)
	control.run("host", "undrain", "sv2").want(0, "sv2 is no longer drained")
	control.run("host", "remove", "sv2").want(9, "sv2 is named by 1 node: two")
	control.run("host", "remove", "sv1").want(0, "sv1 is removed from the site")
	if after, err := h.At(1).Output("cat", "/root/site/site.toml"); err != nil || after != before {
		t.Errorf("the site file is\n%s\nand was\n%s(%v)", after, before, err)
	}
	control.run("down").want(0, "1 node taken down")
	if out, err := far.Output("ls", "-A", "/var/lib/orrery/sites/it-far/nodes"); out != "" {
		t.Errorf("nodes are left: %s %v", out, err)
	}
}

// A controlPoint is a host with the directory of a site whose nodes are on another host.
type controlPoint struct {
	hosts.Host
	t *testing.T
}

// reaches sets how the other host is reached from now on.
func (c controlPoint) reaches(address string) {
	c.t.Helper()
	dir := c.t.TempDir()
	text := fmt.Sprintf(`site.name = "it-far"
network.lan.subnet = "10.99.233.0/24"
image.debian.suite = "bookworm"
host.sv2.address = %q
node.two = { id = 12, host = "sv2", memory = "256MiB" }
`, address)
	if err := os.WriteFile(filepath.Join(dir, "site.toml"), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
	(&site{T: c.t, dir: dir}).carry(c.Host, "/root/site")
}

// run runs the program on the control host.
func (c controlPoint) run(args ...string) result {
	c.t.Helper()
	cmd := c.Command(append([]string{"orrery", "-C", "/root/site"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	_ = cmd.Run()
	return result{&site{T: c.t}, args, cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(began)}
}
