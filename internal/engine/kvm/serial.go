package kvm

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/record"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// Console gives the serial port of a machine.
func (e *Engine) Console(ref engine.Ref) host.Console { return serial{e.machine(ref)} }

type serial struct{ m machine }

// Open takes the port of a running machine.
func (s serial) Open(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	if !s.m.running() {
		return nil, engine.NotRunning(s.m.Ref)
	}
	return s.connect(ctx, by)
}

// connect connects to the port. QEMU serves one at a time and lets others wait without a word, so a lock says who it is.
func (s serial) connect(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	return engine.OpenConsole(ctx, s.m.Ref, s.m.Run, by, "orrery status", func() (io.ReadWriteCloser, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.m.Run, consoleSocket))
	})
}

// panic returns what the kernel of a machine has printed at last: first the line that names the cause, if that was recorded.
func (m machine) panic() string {
	printed, err := serial{m}.Printed()
	if err != nil {
		printed = nil // that it has panicked is told all the same
	}
	return record.Panic(printed)
}

// Printed gives what is recorded of it: as long as the machine runs, by QEMU.
func (s serial) Printed() ([]byte, error) {
	if !s.m.running() {
		return os.ReadFile(s.m.console())
	}
	printed, err := record.Of(s.m.qemu())
	if err != nil {
		return nil, problem.New(problem.Failed, "node %s: what its console has printed cannot be read", s.m.Ref.Name).At(s.m.Ref.Site).Because(err)
	}
	defer printed.Close() //nolint:errcheck // nothing was written
	return record.Read(printed)
}
