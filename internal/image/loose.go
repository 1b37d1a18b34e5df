package image

import (
	"errors"
	"os"

	"orrery/internal/image/rootfs"
)

// Loose returns mounts of directories of the host that are nowhere yet, with their owners mapped
// into ids: whoever has them can put them where the directories themselves cannot be seen.
func Loose(ids rootfs.IDs, trees ...string) ([]*os.File, error) {
	space, err := ids.Open()
	if err != nil {
		return nil, err
	}
	if space != nil {
		defer space.Close()
	}
	var all []*os.File
	for _, tree := range trees {
		loose, err := rootfs.Clone(tree, space, false)
		if err != nil {
			return nil, errors.Join(err, Drop(all))
		}
		all = append(all, loose)
	}
	return all, nil
}

// Drop lets go of loose mounts; those that were fastened stay where they are.
func Drop(all []*os.File) error {
	var errs []error
	for _, loose := range all {
		errs = append(errs, loose.Close())
	}
	return errors.Join(errs...)
}
