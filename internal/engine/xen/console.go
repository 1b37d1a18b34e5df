package xen

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/xl"
)

// Console returns the first console of a guest, which xenconsoled serves on a terminal.
func (e *Engine) Console(ref engine.Ref) host.Console { return console{e.machine(ref)} }

type console struct{ m machine }

// Open connects to the console of a running guest. If several programs read from the terminal, each
// gets only a part, so a lock records the current user. The lock does not exclude users of `xl
// console`.
func (c console) Open(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	if !c.m.running() {
		return nil, engine.NotRunning(c.m.Ref)
	}
	return c.connect(ctx, by)
}

func (c console) connect(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	return engine.OpenConsole(ctx, c.m.Ref, c.m.Run, by, "check that xenconsoled runs on this host, and orrery status",
		func() (io.ReadWriteCloser, error) {
			path, err := xl.ConsolePath(ctx, c.m.domain())
			if err != nil {
				return nil, err
			}
			f, err := openTerminal(path)
			return terminal{f}, err
		})
}

// openTerminal opens a terminal whose other end xenconsoled has, in raw mode.
func openTerminal(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		err = unix.IoctlSetTermios(fd, unix.TCSETS, t)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "set up", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil // Go's poller waits for it, so closing it ends a pending Read
}

// terminal is an open terminal.
type terminal struct{ *os.File }

// Read returns io.EOF when the terminal hangs up because the guest has ended.
func (t terminal) Read(b []byte) (int, error) {
	n, err := t.File.Read(b)
	if errors.Is(err, unix.EIO) {
		err = io.EOF
	}
	return n, err
}

// maxPrintedBytes limits how much of a guest's output Printed returns.
const maxPrintedBytes = 1 << 20

// Printed returns the recorded output of all domains that the node has had, if xenconsoled records
// it.
func (c console) Printed() ([]byte, error) { return printed(consoleLogPrefix + c.m.domain() + ".log") }

func printed(path string) ([]byte, error) {
	text, err := readTail(path, maxPrintedBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return []byte("(Earlier output is not kept: set XENCONSOLED_TRACE=guest in /etc/default/xen to keep it.)\n"),
			nil
	}
	return text, err
}
