package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/seed"
	"orrery/internal/host/process"
	"orrery/internal/site"
	"orrery/internal/tree"
)

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
	up := func(ctx context.Context) error { return e.logins.await(ctx, m, accel) }
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

// seed makes what tells a guest who it is, in memory: its keys reach no disk of the host by it.
func (e *Engine) seed(m machine, r *nodedir.Record) (*os.File, error) {
	keys, err := keysOf(e.Dirs, r)
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
