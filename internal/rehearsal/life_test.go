package rehearsal

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/tree"
	"orrery/test/need"
)

// TestLife checks that hosts reach one another by SSH, see only themselves, and can fail in all
// ways.
func TestLife(t *testing.T) {
	need.Integration(t)
	h, err := Start(some(3, ""))
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	one, two := h.At(1), h.At(2)
	reaches := func(within string) bool {
		_, err := one.Output("ping", "-c", "1", "-i", "0.2", "-w", within, two.Address())
		return err == nil
	}

	t.Run("by SSH", func(t *testing.T) {
		same(t, out(t, one, "ssh sv2 hostname; ssh 10.8.1.3 hostname; ls -A /root"), "sv2\nsv3\n.ssh", "names")
		same(t, out(t, one, `ssh sv2 'cat /proc/1/cgroup' | cut -d: -f3 | sort -u | grep -v -x -e / -e /init || true`), "",
			"control groups that they see of others")
		must(t, two.AddUser("ops", true))
		must(t, two.AddUser("guest", false))
		same(t, out(t, one, "ssh ops@sv2 sudo -n id -u; ssh guest@sv2 sudo -n id -u 2>/dev/null || echo refused"),
			"0\nrefused", "sudo")
		must(t, two.SetEnv("ORRERY_TEST_CLOCK=3600"))
		same(t, out(t, one, "ssh sv2 printenv ORRERY_TEST_CLOCK"), "3600", "its environment")
		if ids := out(t, one, "cat /etc/machine-id /proc/sys/kernel/random/boot_id; ssh sv2 cat /etc/machine-id /proc/sys/kernel/random/boot_id"); len(unique(ids)) != 4 {
			t.Errorf("two hosts have an identity in common:\n%s", ids)
		}
	})
	t.Run("cut off", func(t *testing.T) {
		received := func() string { return out(t, two, "awk '/^Icmp: [0-9]/ {print $10}' /proc/net/snmp") }
		must(t, two.Disconnect(Both))
		if reaches("1") || out(t, two, "cat /sys/class/net/eth0/carrier") != "0" {
			t.Error("a host that is cut off is reached")
		}
		must(t, two.Disconnect(From))
		before := received()
		if reaches("1") || received() == before {
			t.Errorf("a host from which nothing comes is reached, or does not hear: %s echo requests", before)
		}
		must(t, two.Disconnect(To))
		before = received()
		if reaches("1") || received() != before {
			t.Errorf("a host to which nothing comes is reached, or hears: %s echo requests", before)
		}
		must(t, two.Reconnect())
		if !reaches("20") {
			t.Error("a host that has been joined is not reached")
		}
	})
	t.Run("paused", func(t *testing.T) {
		must(t, two.Pause())
		if _, err := one.Output("timeout", "1", "ssh", "sv2", "true"); err == nil {
			t.Error("a host that stands still answers")
		}
		must(t, two.Resume())
		same(t, out(t, one, "ssh sv2 echo back"), "back", "after that")
	})
	t.Run("slow disk", func(t *testing.T) {
		write := func() time.Duration {
			began := time.Now()
			out(t, two, "dd if=/dev/zero of=/var/lib/orrery/x bs=64k count=32 conv=fsync 2>&1")
			return time.Since(began)
		}
		must(t, two.SetDiskRate(1<<20))
		if took := write(); took < time.Second {
			t.Errorf("2 MiB to a disk of 1 MiB a second took %s", took)
		}
		must(t, two.SetDiskRate(0))
	})
	t.Run("killed", func(t *testing.T) {
		boot := out(t, two, "echo kept >/var/lib/orrery/x; echo kept >/etc/x; echo gone >/run/x; cat /proc/sys/kernel/random/boot_id")
		must(t, two.Pause()) // the harder case on cgroup v1
		must(t, two.Kill())
		if _, err := two.Output("true"); err == nil || reaches("1") {
			t.Error("a host that was killed is there")
		}
		must(t, two.Boot())
		same(t, out(t, one, "ssh sv2 'cat /var/lib/orrery/x /etc/x; cat /run/x 2>/dev/null || echo none'"),
			"kept\nkept\nnone", "what it has after it was killed")
		if out(t, two, "cat /proc/sys/kernel/random/boot_id") == boot {
			t.Error("it was started again, and calls the time since as before")
		}
	})
}

// TestKilled checks that nothing is left of hosts if the process that started them is killed, even
// with a paused host. If the supervisor is killed, the next sweep removes all.
func TestKilled(t *testing.T) {
	need.Integration(t)
	const name = "killed"
	of := set{state(), name}
	if os.Getenv("ORRERY_TEST_HOSTS") != "" {
		h, err := Start(some(2, name))
		must(t, err)
		must(t, h.At(2).Pause())
		pid, err := h.SupervisorPID()
		must(t, err)
		_, err = os.Stdout.WriteString("up\t" + strconv.Itoa(pid) + "\n")
		must(t, err)
		time.Sleep(time.Hour)
	}
	start := func(t *testing.T) (asker *exec.Cmd, supervisor int) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "ORRERY_TEST_HOSTS=1")
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "up" {
				supervisor, err = strconv.Atoi(words[1])
				must(t, err)
				return cmd, supervisor
			}
		}
		t.Fatal("they did not come up")
		return nil, 0
	}
	t.Run("who asked", func(t *testing.T) {
		asker, _ := start(t)
		must(t, asker.Process.Kill())
		must(t, of.waitGone())
	})
	t.Run("the supervisor", func(t *testing.T) {
		_, supervisor := start(t)
		must(t, syscall.Kill(supervisor, syscall.SIGKILL))
		must(t, retry(func() error { // it may not have ended yet
			if err := Sweep(of.state); err != nil || !tree.Exists(of.dir()) {
				return err
			}
			return errors.New("hosts whose supervisor was killed have not been swept")
		}))
		must(t, of.waitGone())
	})
}

// some returns options for a number of hosts.
func some(count int, name string) Options {
	o := Options{State: state(), Name: name}
	for i := 1; i <= count; i++ {
		o.Places = append(o.Places, Place{Name: portName(i),
			Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.8.1.%d/24", i))}})
	}
	return o
}

func state() string { return filepath.Clean(need.State()) + "-rehearsals" }

func unique(text string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		all[word] = true
	}
	return all
}

// out runs a script on a host.
func out(t *testing.T, of Host, script string) string {
	t.Helper()
	text, err := of.Output("/bin/sh", "-c", script)
	must(t, err)
	return text
}

func same(t *testing.T, got, want, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, not %q", what, got, want)
	}
}
