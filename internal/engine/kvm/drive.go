package kvm

import (
	"context"
	"errors"
	"os"

	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/site"
)

// addDrive passes QEMU the file of a disk and plugs the disk in.
func addDrive(ctx context.Context, q *qmp.Client, drive site.Drive, f *os.File, at string) error {
	path, err := q.AddFD(ctx, f)
	if err != nil {
		return err
	}
	options := argv.DriveOf(drive, path, at)
	for _, step := range []struct {
		command string
		of      map[string]any
	}{{"object-add", options.Group}, {"blockdev-add", options.Block}, {"device_add", options.Device}} {
		if err := q.Do(ctx, step.command, step.of, nil); err != nil {
			return err
		}
	}
	return nil
}

// removeDriveBackend removes the backend and the limits of a disk that the guest no longer has, if they
// exist. QEMU then closes the disk's file.
func removeDriveBackend(ctx context.Context, q *qmp.Client, drive site.Drive) error {
	for _, step := range []struct {
		command string
		of      map[string]string
	}{{"blockdev-del", map[string]string{"node-name": argv.BlockID(drive)}},
		{"object-del", map[string]string{"id": argv.GroupID(drive)}}} {
		var refused *qmp.CommandError
		if err := q.Do(ctx, step.command, step.of, nil); err != nil && (!errors.As(err, &refused) || !isNotFound(refused)) {
			return err
		}
	}
	return nil
}
