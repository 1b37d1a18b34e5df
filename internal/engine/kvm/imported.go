package kvm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/image/foreign"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/tree"
)

// openImage opens the files of a foreign disk for QEMU: the image in the store, the node's overlay, the
// firmware variables and the seed.
func (l *launch) openImage() error {
	r, line, open := l.r, l.line, l.open
	base, disk, err := l.nodes.Store.OpenDisk(r.Base)
	if err != nil {
		return err
	}
	open[argv.Base] = base
	line.Disk.Format, line.Disk.Seed, line.Disk.Code = disk.Format, r.Disk.Guest == site.CloudInit, nodedir.FirmwareCode
	if err := open.add(argv.Overlay, l.m.OpenDisk); err != nil {
		return err
	}
	if r.Disk.Firmware == site.UEFI {
		if !tree.Exists(nodedir.FirmwareCode) {
			return nodedir.NoFirmware(r.Name)
		}
		if err := open.add(argv.Vars, l.m.OpenVars); err != nil {
			return err
		}
	}
	if !line.Disk.Seed || line.Disk.Empty {
		return nil
	}
	return open.add(argv.Seed, l.createSeed)
}

// createSeed creates the image that identifies the node to its guest. It is in memory, so that the keys
// in it are never written to a disk of the host.
func (l *launch) createSeed() (*os.File, error) {
	r := l.r
	keys, err := keysOf(l.nodes.Dirs, r)
	if err != nil {
		return nil, err
	}
	s := foreign.Seed{
		Node: &r.Node, Key: authorized(keys.Key.PublicKey()),
		Link: foreign.Link{MAC: argv.LinkMAC, Address: argv.LinkAddress},
	}
	if !l.m.Visited() {
		s.Private, s.Public = keys.private, authorized(keys.Host)
	}
	// Without this file, the guest knows only itself.
	s.Hosts, _ = os.ReadFile(filepath.Join(l.nodes.Dirs.Etc(r.Site, r.ID), "hosts"))
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

// ejectSeed removes the seed with the guest's keys from its drive, once the guest has them, and
// records that it has.
func (g *guests) ejectSeed(ctx context.Context, m machine) error {
	if m.Visited() {
		return nil
	}
	if err := g.Runner(m.Ref).Run(ctx, host.Command{Args: []string{"true"}}); err != nil {
		return err // the SSH server answers, but runs no commands
	}
	return m.withMonitor(ctx, func(q *qmp.Client) error {
		for _, o := range []struct {
			command string
			of      map[string]any
		}{
			{"blockdev-open-tray", map[string]any{"id": argv.SeedDrive, "force": true}},
			{"blockdev-remove-medium", map[string]any{"id": argv.SeedDrive}},
			{"blockdev-del", map[string]any{"node-name": "seed"}},
			{"blockdev-del", map[string]any{"node-name": "seed-file"}},
		} {
			if err := q.Do(ctx, o.command, o.of, nil); err != nil {
				return problem.New(problem.Failed, "node %s: its SSH host keys could not be removed from its drive", m.Ref.Name).At(m.Path()).
					Because(err)
			}
		}
		return m.SetVisited()
	})
}
