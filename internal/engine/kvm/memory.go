package kvm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/likeness"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
)

// states are what machines have in memory, with which they go on in another QEMU, or from a file.
type states struct {
	programs *programs
	guests   *guests
}

// Remember writes the state of a machine that stands still. QEMU has to work for that, but not the
// guest: the machine comes out of the freezer, and only its processors stand still until Thaw.
func (s states) Remember(ctx context.Context, ref engine.Ref, file string) error {
	m := machineOf(s.guests.nodes, ref)
	r, err := s.guests.nodes.Record(ref)
	if err != nil {
		return err
	}
	if err := s.movable(ctx, r); err != nil {
		return err
	}
	if err := m.halt(ctx, func(q *qmp.Client) error { return remember(ctx, q, r, file) }); err != nil {
		return m.MemoryProblem(err)
	}
	return nil
}

// remember writes the state that QEMU sends: no more than there can be of it.
func remember(ctx context.Context, q *qmp.Client, r *nodedir.Record, file string) (err error) {
	traits, err := likeness.Of(ctx, q)
	if err != nil {
		return err
	}
	first, err := json.Marshal(traits)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(append(first, '\n')); err != nil {
		return err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer from.Close()
	copied := make(chan error, 1)
	go func() {
		most := vm.MaxStateBytes(&r.Node)
		n, err := io.Copy(f, io.LimitReader(from, most))
		if err == nil && n == most {
			err = errors.New("QEMU sends more than there can be")
		}
		from.Close() //nolint:errcheck // QEMU hears of it
		copied <- err
	}()
	_, err = q.Send(ctx, to)
	to.Close() //nolint:errcheck // QEMU has another
	return errors.Join(err, <-copied)
}

// Recall lets a node go on from a state when it is started next; "": it boots.
func (s states) Recall(ref engine.Ref, file string) error {
	return machineOf(s.guests.nodes, ref).Recall(file)
}

// A state is what a machine had in memory, from which another goes on.
type state struct {
	in   *bufio.Reader
	file *os.File
}

// recall opens the state from which the machine is to go on, and lets what is started be like the
// one that it is of. If there is none, the machine boots, and the state is nil. It is used once.
func (l *launch) recall() (s *state, err error) {
	f, err := os.Open(l.m.Memory())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s = &state{bufio.NewReaderSize(f, 64<<10), f}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := os.Remove(l.m.Memory()); err != nil {
		return nil, err
	}
	first, err := s.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	var traits likeness.Likeness
	if err := json.Unmarshal(first, &traits); err != nil {
		return nil, err
	}
	return s, traits.Take(l.line)
}

func (s *state) close() {
	if s != nil {
		s.file.Close() //nolint:errcheck // it was only read
	}
}

// into lets a machine that was started for it go on from the state.
func (s *state) into(ctx context.Context, m machine) error {
	if s == nil {
		return nil
	}
	return m.ask(ctx, func(q *qmp.Client) error {
		from, to, err := os.Pipe()
		if err != nil {
			return err
		}
		err = q.Receive(ctx, from)
		from.Close() //nolint:errcheck // QEMU has another
		if err != nil {
			to.Close() //nolint:errcheck // nothing was written
			return err
		}
		go func() {
			_, _ = io.Copy(to, s.in) // that QEMU takes no more of it, QEMU says
			to.Close()               //nolint:errcheck // nobody reads it any more
		}()
		for {
			status, err := q.Status(ctx)
			if err != nil {
				return fmt.Errorf("QEMU does not take the state: %w", err)
			}
			if status != qmp.Awaits {
				break
			}
			if err := host.Pause(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
		return q.Do(ctx, "cont", nil, nil)
	})
}
