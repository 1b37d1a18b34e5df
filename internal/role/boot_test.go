package role

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site/distro"
)

// babbler is a node whose systemctl prints a lot before it reports the state.
type babbler struct {
	host.Runner
	state string
}

func (b babbler) Run(_ context.Context, c host.Command) error {
	if c.Args[1] != "is-system-running" {
		return nil
	}
	block := append(bytes.Repeat([]byte("x"), 1<<20-1), '\n')
	for range 1 << 10 {
		if _, err := c.Stdout.Write(block); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(c.Stdout, b.state+"\n"); err != nil {
		return err
	}
	return &host.RunError{Status: 1, Err: errors.New("exit status 1")}
}

// slow is a node that answers only after several requests.
type slow struct {
	host.Runner
	asked *int
}

func (s slow) Run(_ context.Context, c host.Command) error {
	*s.asked++
	if *s.asked < 3 {
		_, err := io.WriteString(c.Stdout, "unknown\n")
		return errors.Join(err, &host.RunError{Status: 1,
			Err: errors.New("Failed to query system state: Connection timed out")})
	}
	return nil
}

// TestAwaitBootOfSlow: if the node's systemd does not answer in time, WaitForBoot asks again. An
// emulated virtual machine on a busy host is such a node.
func TestAwaitBootOfSlow(t *testing.T) {
	asked := 0
	whole, err := WaitForBoot(t.Context(), slow{asked: &asked}, distro.Debian.Services, BootTimeout, io.Discard)
	if err != nil || !whole || asked != 3 {
		t.Errorf("asked %d times: %t, %v", asked, whole, err)
	}
}

// TestAwaitBootIsBounded: the output of a booting node does not fill the host's memory.
func TestAwaitBootIsBounded(t *testing.T) {
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := WaitForBoot(t.Context(), babbler{state: "stopping"}, distro.Debian.Services, BootTimeout,
		io.Discard); err == nil {
		t.Error("a node that says anything counts as booted")
	}
	runtime.ReadMemStats(&now)
	if taken := now.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
		t.Errorf("1 GiB takes %d MiB", taken>>20)
	}
}
