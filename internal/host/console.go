package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

// A Console is the serial console of a place. It shows what the kernel and other programs of the
// place print, even when no command can be run there.
type Console interface {
	// Open opens the console for one user at a time. What is printed from now on can be read from
	// it, and what is written to it is typed. If another user has it open, Open returns a Locked
	// problem that names that user. The caller must read continuously, or the place blocks when it
	// prints.
	Open(ctx context.Context, by Holder) (io.ReadWriteCloser, error)
	// Printed returns what was printed on the console since the place was last started, up to a
	// limit. It returns fs.ErrNotExist if the place was never started.
	Printed() ([]byte, error)
}

// Escape is the key that leaves a console, Ctrl-], as in virsh and telnet. It is never sent to the
// place.
const Escape = 0x1d

// AttachConsole connects the user of a terminal to a line until the user types Escape or has gone, or ctx or
// the line ends. It shows what comes from the line unchanged, because it is meant for a terminal.
// It reports whether the line ended.
func (t *Terminal) AttachConsole(ctx context.Context, line io.ReadWriteCloser) (ended bool, err error) {
	left, printed := make(chan error, 1), make(chan error, 1)
	go func() { // ends with the next key or the program: a blocked read of a terminal cannot be cancelled
		if over, err := copyUntilEscape(line, t.Keys); !over {
			left <- err
		}
	}()
	go func() {
		_, err := io.Copy(t.Screen, line)
		printed <- err
	}()
	select {
	case err := <-printed:
		return true, errors.Join(err, line.Close())
	case err = <-left:
	case <-t.Gone:
		err = errors.New("the terminal was closed")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	err = errors.Join(err, line.Close())
	select {
	case <-printed: //nolint:errcheck // nothing is shown that comes later
	case <-time.After(outputGrace): // the terminal does not read
	}
	return false, err
}

// copyUntilEscape writes what the user types to the line, up to Escape. It ignores the end of the
// line, which the reader of the line notices.
func copyUntilEscape(line io.Writer, keys io.Reader) (over bool, err error) {
	piece := make([]byte, 4<<10)
	for {
		n, err := keys.Read(piece)
		text, _, leaves := bytes.Cut(piece[:n], []byte{Escape})
		if len(text) > 0 {
			if _, bad := line.Write(text); bad != nil && !leaves {
				return true, nil
			}
		}
		switch {
		case leaves, errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		}
	}
}
