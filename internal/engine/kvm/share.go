package kvm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/engine/confine"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/problem"
)

// startVirtiofsd mounts the root of a node in a private mount namespace, starts virtiofsd on it, and mounts
// the volumes. It returns the connection to pass to QEMU.
//
// Virtiofsd has only the ids of the node. So a guest that breaks out into virtiofsd has the rights
// of a container's root. If beside is not 0, it is the virtiofsd whose mounts the new one shares.
func (l *launch) startVirtiofsd(ctx context.Context, beside int) (root *os.File, err error) {
	mounts, err := l.nodes.Mounts(l.r)
	if err != nil {
		return nil, err
	}
	o := l.m.Overlay(l.nodes.Store, l.r)
	cover, err := l.m.DiskDirCover()
	if err != nil {
		return nil, err
	}
	// Mount /etc/orrery now and volumes later, because virtiofsd cannot release what was mounted
	// before it started.
	o.Inside = append(o.Inside, cover, mounts[0].Inside())
	program, err := qemu.Virtiofsd()
	if err != nil {
		return nil, err
	}
	version, err := l.programs.versions.Of(ctx, program)
	if err != nil {
		return nil, err
	}
	listener, socket, err := l.m.listen("share.sock")
	if err != nil {
		return nil, err
	}
	defer listener.Close() //nolint:errcheck // virtiofsd has its own
	defer socket.Close()
	said, err := confine.OutputFile("virtiofsd")
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd := host.Program(context.WithoutCancel(ctx), program, virtiofsdArgs(version, o.Target, l.r.VM.Disk == "")...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = said, said, []*os.File{socket}
	if err := (confine.Share{Overlay: o, Other: beside}).Start(cmd, l.m.Group()); err != nil {
		return nil, l.m.StartProblem(err, "")
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // reap the process
		close(ended)
	}()
	conn, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // what is given is a copy
	if err := l.mountVolumes(ctx, ended); err != nil {
		return nil, l.m.StartProblem(err, confine.ReadOutput(said))
	}
	return conn.(*net.UnixConn).File()
}

// virtiofsdArgs returns the command line of virtiofsd. There are two programs: the one in C that came
// with QEMU up to 7.2 and has QEMU's version, and the one in Rust, whose versions begin with 1
// again. The listening socket is the first file passed to it. Its limit of open files is set from
// outside. With announce, it announces mounts in the root as separate file systems. It does not for
// a guest with an overlay above the root, which does not follow such mounts.
func virtiofsdArgs(version, root string, announce bool) []string {
	if qemu.IsRustVirtiofsd(version) {
		args := []string{"--fd=3", "--shared-dir=" + root, "--cache=auto", "--sandbox=namespace", "--xattr", "--posix-acl",
			"--log-level=error", "--rlimit-nofile=0"}
		if announce {
			return append(args, "--announce-submounts")
		}
		return append(args, "--no-announce-submounts") // the default is to announce them
	}
	options := "cache=auto,sandbox=namespace,xattr,posix_acl,log_level=err"
	if announce {
		options += ",announce_submounts"
	}
	return []string{"--fd=3", "-o", "source=" + strings.ReplaceAll(root, ",", `\,`), "-o", options,
		"--thread-pool-size=0", "--rlimit-nofile=0"}
}

// isolationTimeout limits how long virtiofsd may take to enter its own namespaces.
const isolationTimeout = 30 * time.Second

// mountVolumes mounts the volumes of a node that is being started. It waits until virtiofsd has its own
// namespaces. Mounts that virtiofsd copied into them would stay there for ever, because the kernel
// allows no unmount in a user namespace that would uncover what was covered before.
func (l *launch) mountVolumes(ctx context.Context, ended <-chan struct{}) error {
	volumes := l.nodes.Volumes(&l.r.Node, l.r.Mounts)
	if len(volumes) == 0 {
		return nil
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		s := &remounting{m: l.m, ids: l.r.IDs(), sharer: l.m.startingVirtiofsdPID()}
		if s.sharer != 0 {
			if table, err := s.volumeMounts(); err == nil && len(table) == 0 {
				return s.mount(volumes)
			}
		}
		select {
		case <-ended:
			return errors.New("virtiofsd has exited")
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if time.Since(begun) > isolationTimeout {
			return errors.New("virtiofsd could not confine itself")
		}
	}
}

// listen creates a listening socket in the run directory, which only root can enter, so that no
// other process can replace it.
func (m machine) listen(name string) (*net.UnixListener, *os.File, error) {
	if err := os.MkdirAll(m.Run, 0o700); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(m.Run, name)
	if len(path) >= 108 { // sun_path of unix(7)
		return nil, nil, problem.New(problem.Unable, "node %s: the path of its sockets is too long", m.Ref.Name).At(path).
			Try("set ORRERY_RUN to a shorter one")
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, nil, err
	}
	listener.SetUnlinkOnClose(false)
	f, err := listener.File()
	if err != nil {
		listener.Close() //nolint:errcheck // nobody has called
		return nil, nil, err
	}
	return listener, f, nil
}
