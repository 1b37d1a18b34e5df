package role

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"

	"orrery/internal/distro"
	"orrery/internal/host"
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
