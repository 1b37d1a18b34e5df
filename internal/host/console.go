package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

// A Console is the serial console of a place: what its kernel and whoever else likes prints there,
// also when no command can be run in it.
type Console interface {
	// Open takes the console: what is printed from now on comes from it, and what is written to it is
	// typed. One has it at a time; that somebody else does is a Locked problem, which names him.
	// Whoever has it reads it, or the place waits for him.
	Open(ctx context.Context, by Holder) (io.ReadWriteCloser, error)
	// Printed returns what was printed on it since the place was last started, of which no more than
	// so much is kept; fs.ErrNotExist: it never was.
	Printed() ([]byte, error)
}

// Escape is the key by which one leaves a console, Ctrl-], as in virsh and telnet. The place never gets it.
const Escape = 0x1d

// Work lets who sits at a terminal work at a line, until he types Escape or is gone, or ctx or the
// line ends. What comes along the line is shown as it is: it is for the terminal.
func (t *Terminal) Work(ctx context.Context, line io.ReadWriteCloser) (ended bool, err error) {
	left, printed := make(chan error, 1), make(chan error, 1)
	go func() { // it ends with the next key, or with the program: there is no other way to end the reading of a terminal
		if over, err := typeUntilEscape(line, t.Keys); !over {
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
		err = errors.New("its terminal has gone")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	err = errors.Join(err, line.Close())
	select {
	case <-printed: //nolint:errcheck // nothing is shown that comes later
	case <-time.After(outputGrace): // the terminal takes nothing
	}
	return false, err
}

// typeUntilEscape types what somebody does, up to Escape. That the line is over shows in its other direction.
func typeUntilEscape(line io.Writer, keys io.Reader) (over bool, err error) {
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
