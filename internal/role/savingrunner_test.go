package role

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"

	"orrery/internal/host"
)

// gusher is a node whose tar returns far more data than was written there.
type gusher struct {
	host.Runner
	puts int
}

func (g *gusher) Run(_ context.Context, c host.Command) error {
	block := bytes.Repeat([]byte("x"), 1<<20)
	for range 1 << 10 {
		if _, err := c.Stdout.Write(block); err != nil {
			return err
		}
	}
	return nil
}

func (g *gusher) Put(context.Context, ...host.File) error { g.puts++; return nil }

// TestSaverIsBounded: if a node has replaced files by large ones, saving them does not fill the
// host's memory, and they are not overwritten.
func TestSaverIsBounded(t *testing.T) {
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	node := &gusher{}
	err := NewSavingRunner(node, nil).Put(t.Context(), host.File{Path: "/etc/x"})
	if err == nil || !strings.Contains(err.Error(), "16 MiB") || !strings.Contains(err.Error(), "/etc/x") {
		t.Errorf("error %v", err)
	}
	if node.puts != 0 {
		t.Error("what cannot be put back was overwritten")
	}
	runtime.ReadMemStats(&now)
	if taken := now.TotalAlloc - before.TotalAlloc; taken > 128<<20 {
		t.Errorf("1 GiB takes %d MiB", taken>>20)
	}
}
