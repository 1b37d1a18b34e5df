package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/host/filesystem"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// cordonFile returns the path of the mark that no node of the site may move to this host. It is
// beside the host's other files of the site, and survives a reboot and the removal of all nodes.
func (h stateHost) cordonFile() string { return filepath.Join(h.Dirs.Site(h.Key), "drained.json") }

// Cordoned reads the mark. It returns an error if the mark cannot be read, because the host may be
// drained.
func (h stateHost) Cordoned(context.Context) (*observe.Drain, error) {
	mark, err := host.ReadJSON[observe.Drain](h.cordonFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, problem.New(problem.Failed, "the mark that this host is drained cannot be read").At(h.cordonFile()).
			Because(err).
			Try("remove the file, and run orrery host drain again if the host must stay drained")
	}
	return &mark, nil
}

// SetCordoned sets the mark, or removes it if mark is nil.
func (h stateHost) SetCordoned(_ context.Context, mark *observe.Drain) error {
	if mark != nil {
		return host.WriteJSON(h.cordonFile(), 0o600, mark)
	}
	if err := os.Remove(h.cordonFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// disk returns the size of the file system for nodes and its free space, or nil if unknown.
func (h stateHost) disk(ctx context.Context) *observe.Disk {
	ctx, stop := context.WithTimeout(ctx, disksTimeout)
	defer stop()
	d, ok := filesystem.ReadNearest(ctx, h.Dirs.State)
	if !ok {
		return nil
	}
	return &observe.Disk{Total: d.Size(), Free: d.Free}
}
