package local

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"orrery/internal/apply"
	"orrery/internal/host"
)

// KeepBoot keeps what the host does after a reboot. Nothing is to be kept of a site of which the host has nothing.
func (h stateHost) KeepBoot(_ context.Context, b apply.Boot) error {
	path := apply.BootPath(h.Dirs, h.Key)
	if len(b.Steps) > 0 {
		return host.WriteJSON(path, 0o600, b)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
