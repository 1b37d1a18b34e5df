package image

import (
	"errors"
	"os"

	"orrery/internal/image/rootfs"
)

// DetachedMounts returns detached mounts of directories of the host, with their owners mapped to ids. The
// caller can attach them where the directories themselves are not visible.
func DetachedMounts(ids rootfs.IDs, trees ...string) ([]*os.File, error) {
	space, err := ids.Open()
	if err != nil {
		return nil, err
	}
	if space != nil {
		defer space.Close()
	}
	var all []*os.File
	for _, tree := range trees {
		loose, err := rootfs.CloneTree(tree, space, false)
		if err != nil {
			return nil, errors.Join(err, CloseMounts(all))
		}
		all = append(all, loose)
	}
	return all, nil
}

// CloseMounts closes detached mounts. Mounts that have been attached stay.
func CloseMounts(all []*os.File) error {
	var errs []error
	for _, loose := range all {
		errs = append(errs, loose.Close())
	}
	return errors.Join(errs...)
}
