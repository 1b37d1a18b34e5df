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
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/strict/jsonlimit"
)

// states transfers the memory of machines to another QEMU or to a file.
type states struct {
	programs *programs
	guests   *guests
}

// SaveMemory saves the state of a frozen machine. QEMU must run for that, so the machine is thawed,
// and only its processors stay stopped until Thaw.
func (s states) SaveMemory(ctx context.Context, ref engine.Ref, file string) error {
	m := machineOf(s.guests.nodes, ref)
	r, err := s.guests.nodes.Record(ref)
	if err != nil {
		return err
	}
	if err := s.checkMovable(ctx, r); err != nil {
		return err
	}
	if err := m.whileHalted(ctx, func(q *qmp.Client) error { return writeState(ctx, q, r, file) }); err != nil {
		return m.MemoryProblem(err)
	}
	return nil
}

// writeState writes the state that QEMU sends. It returns an error if that is more than the machine's
// state can be.
func writeState(ctx context.Context, q *qmp.Client, r *nodedir.Record, file string) (err error) {
	traits, err := traitsOf(ctx, q)
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
			err = errors.New("QEMU sent more than the memory can hold")
		}
		from.Close() //nolint:errcheck // QEMU hears of it
		copied <- err
	}()
	_, err = q.Send(ctx, to)
	to.Close() //nolint:errcheck // QEMU has another
	return errors.Join(err, <-copied)
}

// ResumeFrom makes the next start of a node resume from a state, or boot if file is "".
func (s states) ResumeFrom(ref engine.Ref, file string) error {
	return machineOf(s.guests.nodes, ref).ResumeFrom(file)
}

// A state is the saved memory of a machine, which another machine loads.
type state struct {
	in   *bufio.Reader
	file *os.File
}

// openState opens the state from which the machine will resume, and adapts the new machine to the
// saved one. It removes the file, so a state is used once. If there is no file, the state is nil
// and the machine boots.
func (l *launch) openState() (s *state, err error) {
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
	var traits machineTraits
	if err := jsonlimit.Unmarshal(first, &traits); err != nil {
		return nil, err
	}
	return s, traits.Apply(l.line)
}

func (s *state) close() {
	if s != nil {
		s.file.Close() //nolint:errcheck // it was only read
	}
}

// load loads the state into a machine that was started for it, and lets the machine continue.
func (s *state) load(ctx context.Context, m machine) error {
	if s == nil {
		return nil
	}
	return m.withMonitor(ctx, func(q *qmp.Client) error {
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
			_, _ = io.Copy(to, s.in) // ignore the error: if QEMU reads no more, its status says why
			to.Close()               //nolint:errcheck // nobody reads it any more
		}()
		for {
			status, err := q.Status(ctx)
			if err != nil {
				return fmt.Errorf("QEMU rejected the state: %w", err)
			}
			if status != qmp.Receiving {
				break
			}
			if err := host.Sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
		return q.Do(ctx, "cont", nil, nil)
	})
}
