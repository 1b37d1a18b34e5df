package kvm

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/record"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// Console returns the serial port of a machine.
func (v views) Console(ref engine.Ref) host.Console { return serial{machineOf(v.nodes, ref)} }

type serial struct{ m machine }

// Open connects to the serial port of a running machine.
func (s serial) Open(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	if !s.m.running() {
		return nil, engine.NotRunning(s.m.Ref)
	}
	return s.connect(ctx, by)
}

// connect connects to the port. QEMU serves one connection at a time and lets others wait silently,
// so a lock records the current user.
func (s serial) connect(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	return engine.OpenConsole(ctx, s.m.Ref, s.m.Run, by, "orrery status", func() (io.ReadWriteCloser, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.m.Run, consoleSocket))
	})
}

// panicOutput returns what the kernel of a machine printed last, beginning with the line that names the
// cause, if it was recorded.
func (s serial) panicOutput() string {
	printed, err := s.Printed()
	if err != nil {
		printed = nil // report the panic without the output
	}
	return record.PanicCause(printed)
}

// lastLines returns what the guest of a machine that does not start has printed last.
func (s serial) lastLines(ctx context.Context) string {
	if !s.m.running() {
		awaitRecorder(ctx, s.m.Group())
	}
	text, _ := record.Read(s.m.Run) // ignore the error: the text is only for a message
	return record.LastLines(text)
}

// Printed returns the recorded output of a machine that runs or has ended unexpectedly, or else the
// output saved when it stopped.
func (s serial) Printed() ([]byte, error) {
	text, err := record.Read(s.m.Run)
	switch {
	case err == nil:
		return text, nil
	case errors.Is(err, fs.ErrNotExist) && !s.m.running():
		return os.ReadFile(s.m.console())
	}
	return nil, problem.New(problem.Failed, "node %s: its console is not recorded", s.m.Ref.Name).At(s.m.Ref.Site).
		Because(err).
		Try("orrery restart %s, if an earlier version of Orrery started it", s.m.Ref.Name)
}
