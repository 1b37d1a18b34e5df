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
	"orrery/internal/engine/kvm/recorder"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// Console returns the serial port of a machine.
func (v views) Console(ref engine.Ref) host.Console { return serial{machineOf(v.nodes, ref)} }

type serial struct{ m machine }

// Open takes the port of a running machine.
func (s serial) Open(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	if !s.m.running() {
		return nil, engine.NotRunning(s.m.Ref)
	}
	return s.connect(ctx, by)
}

// connect connects to the port. QEMU serves one at a time and lets others wait without a word, so a
// lock says who it is.
func (s serial) connect(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	return engine.OpenConsole(ctx, s.m.Ref, s.m.Run, by, "orrery status", func() (io.ReadWriteCloser, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.m.Run, consoleSocket))
	})
}

// panic returns what the kernel of a machine has printed at last: first the line that names the
// cause, if that was recorded.
func (s serial) panic() string {
	printed, err := s.Printed()
	if err != nil {
		printed = nil // that it has panicked is told all the same
	}
	return record.Panic(printed)
}

// lastWords returns the last that the guest of a machine has printed that does not start.
func (s serial) lastWords(ctx context.Context) string {
	if !s.m.running() {
		recorder.Await(ctx, s.m.Group())
	}
	text, _ := record.Read(s.m.Run) // it is only told
	return record.LastWords(text)
}

// Printed returns what is recorded of a machine that runs, or has ended unexpectedly; else what was
// kept when it stopped.
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
		Try("orrery restart %s, if a former version of orrery started it", s.m.Ref.Name)
}
