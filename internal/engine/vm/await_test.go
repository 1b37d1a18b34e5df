package vm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/transport/rpc"
)

// dying is a guest whose kernel gives up at the first request. Its agent ends shortly before its
// machine.
type dying struct {
	host.Runner
	conn net.Conn
}

func (d dying) Await(context.Context, string) error {
	_ = d.conn.Close()
	return errors.New("never heard")
}
func (dying) ConfigureNICs(context.Context, []boot.NIC) error  { return nil }
func (dying) PowerOff() error                                  { return nil }
func (dying) Unmount(context.Context, []string) error          { return nil }
func (dying) RefreshMounts(context.Context, []string) error    { return nil }
func (dying) CheckDisksUnused(context.Context, []string) error { return nil }
func (dying) WakeFileServer(context.Context) error             { return nil }

var _ rpc.Machine = dying{}

// TestAwaitDying: a guest that dies before its init is up counts as not started, however long its
// machine takes to end.
func TestAwaitDying(t *testing.T) {
	dir, err := os.MkdirTemp("", "vm") // short, because a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // at the end
	l, err := net.Listen("unix", filepath.Join(dir, rpc.SocketName(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // at the end
	dead := make(chan struct{})
	go func() {
		defer close(dead)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = rpc.Serve(t.Context(), conn, dying{host.Local{}, conn})
	}()
	var isOff atomic.Bool
	off := func(ctx context.Context) error {
		select {
		case <-dead:
		case <-ctx.Done():
			return ctx.Err()
		}
		time.Sleep(50 * time.Millisecond)
		isOff.Store(true)
		return nil
	}
	a := &Agents{Nodes: &nodedir.Nodes{Running: func(engine.Ref) bool { return !isOff.Load() }}}
	m := Machine{Ref: engine.Ref{Site: "s", Name: "n", ID: 1}, Run: dir}
	err = a.Await(t.Context(), m, Timeouts{Agent: time.Minute, Orders: time.Minute}, off)
	if err == nil || !strings.Contains(err.Error(), "switched off before its init was up") {
		t.Error(err)
	}
}
