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

// babbler is a node whose systemctl says much before it says how the node is.
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

// slow is a node that answers nobody until it was asked so often.
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

// TestAwaitBootOfSlow: a node whose systemd does not answer in time, such as an emulated virtual
// machine on a busy host, is asked again.
func TestAwaitBootOfSlow(t *testing.T) {
	asked := 0
	if whole, err := AwaitBoot(t.Context(), slow{asked: &asked}, distro.Debian.Services, io.Discard); err != nil ||
		!whole || asked != 3 {
		t.Errorf("asked %d times: %t, %v", asked, whole, err)
	}
}

// What a node says of itself while it boots does not fill the host's memory.
func TestAwaitBootIsBounded(t *testing.T) {
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := AwaitBoot(t.Context(), babbler{state: "stopping"}, distro.Debian.Services, io.Discard); err == nil {
		t.Error("a node that says anything counts as booted")
	}
	runtime.ReadMemStats(&now)
	if taken := now.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
		t.Errorf("1 GiB takes %d MiB", taken>>20)
	}
}
