package kvm

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// Console gives the serial port of a machine.
func (e *Engine) Console(ref engine.Ref) host.Console { return serial{e.machine(ref)} }

type serial struct{ m machine }

// Open takes the port of a running machine.
func (s serial) Open(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	if !s.m.running() {
		return nil, engine.NotRunning(s.m.ref)
	}
	return s.connect(ctx, by)
}

// connect connects to the port. QEMU serves one at a time and lets others wait without a word, so a lock says who it is.
func (s serial) connect(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	path := filepath.Join(s.m.run, "console.lock")
	held, err := host.TakeLock(path, by)
	if problem.Is(err, problem.Locked) {
		return nil, problem.New(problem.Locked, "the console of node %s is taken: %s", s.m.ref.Name, host.HeldBy(path)).At(s.m.ref.Site).
			Try("wait, or end that process; orrery console --log %s shows what is printed on it", s.m.ref.Name)
	}
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.m.run, consoleSocket))
	if err != nil {
		held.Release()
		return nil, problem.New(problem.Failed, "the console of node %s does not answer", s.m.ref.Name).At(s.m.ref.Site).Because(err).Try("orrery status")
	}
	return line{conn, held}, nil
}

// line is a connection to a port, and the right to have it.
type line struct {
	net.Conn
	held *host.Lock
}

func (l line) Close() error {
	defer l.held.Release()
	return l.Conn.Close()
}

// Printed gives what is recorded of it: as long as the machine runs, by QEMU.
func (s serial) Printed() ([]byte, error) {
	if !s.m.running() {
		return os.ReadFile(s.m.console())
	}
	record, err := s.m.record()
	if err != nil {
		return nil, problem.New(problem.Failed, "node %s: what its console has printed cannot be read", s.m.ref.Name).At(s.m.ref.Site).Because(err)
	}
	defer record.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(record, mostConsole))
}
