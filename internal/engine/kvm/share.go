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

// share mounts the root of a node where nobody else sees it, starts virtiofsd on it, and mounts the
// volumes. QEMU is to be handed the connection.
//
// Virtiofsd has the ids of the node and no others, so that a guest which breaks out into it is what
// a container's root is. Another one beside it shares what that has mounted.
func (l *launch) share(ctx context.Context, beside int) (root *os.File, err error) {
	mounts, err := l.nodes.Mounts(l.r)
	if err != nil {
		return nil, err
	}
	o := l.m.Overlay(l.nodes.Store, l.r)
	cover, err := l.m.Cover()
	if err != nil {
		return nil, err
	}
	// that of /etc/orrery; volumes come later, as virtiofsd cannot let go of what was there before it
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
	said, err := confine.Scrap("virtiofsd")
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd := host.Program(context.WithoutCancel(ctx), program, sharing(version, o.Target, l.r.VM.Disk == "")...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = said, said, []*os.File{socket}
	if err := (confine.Share{Overlay: o, Other: beside}).Start(cmd, l.m.Group()); err != nil {
		return nil, l.m.StartProblem(err, "")
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // so that it is not left as a zombie
		close(ended)
	}()
	conn, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // what is given is a copy
	if err := l.bring(ctx, ended); err != nil {
		return nil, l.m.StartProblem(err, confine.SaidOn(said))
	}
	return conn.(*net.UnixConn).File()
}

// sharing is the command line of virtiofsd: that which came with QEMU up to 7.2, written in C and
// of QEMU's version, or the one in Rust, which begins with 1 again. The listening socket is the
// first file that it is handed; how many files it may have open, it is given. What is mounted in
// the root, it announces as a file system of its own, but to a guest that has an overlay above it:
// that follows no such mounts.
func sharing(version, root string, announce bool) []string {
	if qemu.InRust(version) {
		args := []string{"--fd=3", "--shared-dir=" + root, "--cache=auto", "--sandbox=namespace", "--xattr", "--posix-acl",
			"--log-level=error", "--rlimit-nofile=0"}
		if announce {
			return append(args, "--announce-submounts")
		}
		return append(args, "--no-announce-submounts") // it does so unless it is told not to
	}
	options := "cache=auto,sandbox=namespace,xattr,posix_acl,log_level=err"
	if announce {
		options += ",announce_submounts"
	}
	return []string{"--fd=3", "-o", "source=" + strings.ReplaceAll(root, ",", `\,`), "-o", options,
		"--thread-pool-size=0", "--rlimit-nofile=0"}
}

// shuttingOff is how long virtiofsd may take to shut itself off from all but the root of its node.
const shuttingOff = 30 * time.Second

// bring mounts the volumes of a node that is being started. They come when virtiofsd has its own
// namespaces: what it takes along into them stays there for ever, because the kernel lets nobody
// uncover in a user's namespace what was covered before.
func (l *launch) bring(ctx context.Context, ended <-chan struct{}) error {
	volumes := l.nodes.Volumes(&l.r.Node, l.r.Mounts)
	if len(volumes) == 0 {
		return nil
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		s := &remounting{m: l.m, ids: l.r.IDs(), sharer: l.m.insideSharer()}
		if s.sharer != 0 {
			if table, err := s.table(); err == nil && len(table) == 0 {
				return s.mount(volumes)
			}
		}
		select {
		case <-ended:
			return errors.New("virtiofsd has ended")
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if time.Since(begun) > shuttingOff {
			return errors.New("virtiofsd does not shut itself off")
		}
	}
}

// listen makes a socket in the directory of what is there while the machine runs: root's, so that
// nobody else can be behind it.
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
