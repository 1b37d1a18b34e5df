package nodes

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// ScreenOf returns the screen of a running node.
func ScreenOf(ctx context.Context, c *control.Session, s *site.Site, name string) (host.Screen, error) {
	h, n, err := existingNode(ctx, c, s, name)
	if err != nil {
		return nil, err
	}
	if !n.Runs() {
		return nil, way.NotRunningError(name)
	}
	return h.Nodes.Screen(&n.Node)
}

// ListenForCaller listens on a Unix socket to which only root and the caller can connect. The
// caller is the user behind sudo. Closing the listener removes the socket and its directory.
func ListenForCaller(name string) (net.Listener, error) {
	dir, err := os.MkdirTemp("", "orrery-screen-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	l, err := net.Listen("unix", path)
	if err == nil {
		err = chownToCaller(dir, path)
	}
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return nil, problem.New(problem.Failed, "cannot listen for viewers").At(path).
			Because(errors.Join(err, os.Remove(dir)))
	}
	return socketListener{l, dir}, nil
}

// chownToCaller makes the caller the owner of a socket. Its directory can be changed only by root.
func chownToCaller(dir, socket string) error {
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	caller, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil || caller <= 0 || os.Geteuid() != 0 {
		return nil
	}
	if err := os.Lchown(socket, caller, -1); err != nil {
		return err
	}
	return os.Chmod(dir, 0o711)
}

// socketListener is a listener with a socket in a directory of its own.
type socketListener struct {
	net.Listener
	dir string
}

func (l socketListener) Close() error {
	err := l.Listener.Close()
	return errors.Join(err, os.RemoveAll(l.dir))
}
