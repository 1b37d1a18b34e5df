package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// drainFile has the mark on this host that no node of the site comes to it any more. It is beside
// what the host keeps of the site, and survives a reboot and the end of all nodes.
func (h stateHost) drainFile() string { return filepath.Join(h.Dirs.Site(h.Key), "drained.json") }

// Cordoned reads the mark. One that cannot be read is no sign that there is none.
func (h stateHost) Cordoned(context.Context) (*observe.Drain, error) {
	mark, err := host.ReadJSON[observe.Drain](h.drainFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, problem.New(problem.Failed, "the mark that this host is drained cannot be read").At(h.drainFile()).
			Because(err).
			Try("remove the file, and say orrery host drain again if that is so")
	}
	return &mark, nil
}

// SetCordoned puts the mark on this host, or takes it away.
func (h stateHost) SetCordoned(_ context.Context, mark *observe.Drain) error {
	if mark != nil {
		return host.WriteJSON(h.drainFile(), 0o600, mark)
	}
	if err := os.Remove(h.drainFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// disk tells what room there is where nodes are kept; nil: nobody can tell.
func (h stateHost) disk() *observe.Disk {
	for _, dir := range []string{h.Dirs.State, filepath.Dir(h.Dirs.State)} { // nothing was ever done here
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil {
			return &observe.Disk{Total: int64(s.Blocks) * s.Bsize, Free: int64(s.Bavail) * s.Bsize}
		}
	}
	return nil
}
