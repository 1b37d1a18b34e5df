package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/seed"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/tree"
)

// settingUp is how long a guest that sets itself up may take until its SSH server lets us in. In emulation it may take emulated times as long.
const settingUp = 5 * time.Minute

// startDisk lets a machine boot a disk that others have made.
func (e *Engine) startDisk(ctx context.Context, m machine, r *nodedir.Record) (err error) {
	accel, _ := e.accel()
	open := handed{}
	defer func() { err = errors.Join(err, open.close()) }()
	if err := m.record(ctx, r, open); err != nil {
		return err
	}
	if err := m.handOwnSockets(open); err != nil {
		return err
	}
	if err := open.lay(r); err != nil {
		return err
	}
	line := &argv.Machine{Node: &r.Node, Accel: accel}
	state, used, err := m.remembered(line)
	if err != nil {
		return err
	}
	defer used()
	if err := e.handDisk(m, r, line, open); err != nil {
		return err
	}
	if err := e.launch(ctx, m, r, line, open); err != nil {
		return err
	}
	if state != nil {
		if err := m.goOnFrom(ctx, state); err != nil {
			return m.StartProblem(err, "")
		}
	}
	if err := m.pin(ctx, r); err != nil {
		return err
	}
	if r.Disk.Guest == site.NoGuest {
		return ctx.Err()
	}
	up := func(ctx context.Context) error { return e.awaitLogin(ctx, m, accel) }
	if err := m.unlessHalted(ctx, up); err != nil {
		return m.StartProblem(err, m.lastWords(ctx))
	}
	return errors.Join(ctx.Err(), e.visited(ctx, m))
}

// handDisk opens what QEMU is handed of a node's disk: the image in the store, what the node has written, what its firmware keeps, and its seed.
func (e *Engine) handDisk(m machine, r *nodedir.Record, line *argv.Machine, open handed) error {
	base, is, err := e.Store.OpenDisk(r.Base)
	if err != nil {
		return err
	}
	open[argv.Base] = base
	line.Disk.Format, line.Disk.Seed, line.Disk.Code = is.Format, r.Disk.Guest == site.CloudInit, nodedir.FirmwareCode
	if err := open.add(argv.Overlay, m.OpenDisk); err != nil {
		return err
	}
	if r.Disk.Firmware == site.UEFI {
		if !tree.Exists(nodedir.FirmwareCode) {
			return nodedir.NoFirmware(r.Name)
		}
		if err := open.add(argv.Vars, m.OpenVars); err != nil {
			return err
		}
	}
	if !line.Disk.Seed || line.Disk.Empty {
		return nil
	}
	return open.add(argv.Seed, func() (*os.File, error) { return e.seed(m, r) })
}

// add opens a file that is handed over.
func (h handed) add(name string, open func() (*os.File, error)) error {
	f, err := open()
	if err == nil {
		h[name] = f
	}
	return err
}

// seed makes what tells a guest who it is, in memory: its keys reach no disk of the host by it.
func (e *Engine) seed(m machine, r *nodedir.Record) (*os.File, error) {
	keys, err := e.keys(r)
	if err != nil {
		return nil, err
	}
	s := seed.Seed{
		Node: &r.Node, Key: authorized(keys.Key.PublicKey()), Link: seed.Link{MAC: argv.LinkMAC, Address: argv.LinkAddress},
	}
	if !m.Visited() {
		s.Private, s.Public = keys.private, authorized(keys.Host)
	}
	s.Hosts, _ = os.ReadFile(filepath.Join(e.Dirs.Etc(r.Site, r.ID), "hosts")) // without, it knows itself
	for line := range strings.Lines(nodedir.Resolvers()) {
		switch words := strings.Fields(line); words[0] {
		case "nameserver":
			s.Resolvers = append(s.Resolvers, words[1])
		case "search":
			s.Search = words[1:]
		}
	}
	image, err := s.Image()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("seed", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "seed")
	defer f.Close() //nolint:errcheck // in memory
	if _, err := f.Write(image); err != nil {
		return nil, err
	}
	return os.Open(process.Host.File(os.Getpid(), fmt.Sprintf("fd/%d", f.Fd()))) // for reading only
}

func authorized(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// awaitLogin waits until the guest lets us in.
func (e *Engine) awaitLogin(ctx context.Context, m machine, accel string) error {
	patience := settingUp
	if accel != observe.KVM {
		patience *= emulated
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	waiting, fail := context.WithCancelCause(waiting)
	defer fail(nil)
	go func() {
		if m.awaitOff(waiting) == nil {
			fail(errors.New("it was switched off before its SSH server answered"))
		}
	}()
	_, err := e.login(waiting, m)
	switch {
	case err == nil:
		return nil
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		return fmt.Errorf("its SSH server has not let us in within %v: %w", patience, err)
	case waiting.Err() != nil:
		return context.Cause(waiting)
	}
	return err
}

// visited takes the seed with the guest's keys from it, once the guest has them, and records that it does.
func (e *Engine) visited(ctx context.Context, m machine) error {
	if m.Visited() {
		return nil
	}
	if err := e.Runner(m.Ref).Run(ctx, host.Command{Args: []string{"true"}}); err != nil {
		return err // somebody is there who cannot do anything
	}
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // it has answered
	for _, command := range []string{"blockdev-open-tray", "blockdev-remove-medium"} {
		args := map[string]any{"id": argv.SeedDrive}
		if command == "blockdev-open-tray" {
			args["force"] = true
		}
		if err := q.Do(ctx, command, args, nil); err != nil {
			return problem.New(problem.Failed, "node %s: its SSH host keys stay in its drive", m.Ref.Name).At(m.Path()).Because(err)
		}
	}
	for _, name := range []string{"seed", "seed-file"} {
		if err := q.Do(ctx, "blockdev-del", map[string]any{"node-name": name}, nil); err != nil {
			return problem.New(problem.Failed, "node %s: its SSH host keys stay in its drive", m.Ref.Name).At(m.Path()).Because(err)
		}
	}
	return m.Visit()
}

// pressing is how often the power button of a guest is pressed that does not switch itself off: one that boots does not feel it.
const pressing = 10 * time.Second

// pressButton presses the power button until the machine is off.
func (e *Engine) pressButton(ctx context.Context, m machine) error {
	off := make(chan error, 1)
	go func() { off <- m.awaitOff(ctx) }()
	for {
		if q, err := m.monitor(ctx); err == nil {
			_ = q.Do(ctx, "system_powerdown", nil, nil)
			_ = q.Close()
		}
		select {
		case err := <-off:
			return err
		case <-time.After(pressing):
		}
	}
}
