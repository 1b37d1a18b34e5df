package image

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"

	"orrery/internal/tree"
	"orrery/internal/treesync"

	"golang.org/x/sys/unix"
)

// canonical changes a tree that a container wrote into one that every container can use. It removes
// overlayfs's attributes, and makes file capabilities valid in any user namespace. It returns an
// error unless all owners are ids of the container.
func canonical(ctx context.Context, dir string, ids uint32) error {
	root, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Walk(ctx, tree.DefaultBounds, func(e *tree.Entry) error {
		if err := canonicalEntry(e, ids); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, e.Path), err)
		}
		return nil
	})
}

func canonicalEntry(e *tree.Entry, ids uint32) error {
	if tree.IsWhiteout(&e.Stat) {
		// overlayfs created it with an owner outside of the container
		return unix.Fchownat(e.Dir, e.Name, 0, 0, unix.AT_SYMLINK_NOFOLLOW)
	}
	if e.Stat.Uid >= ids || e.Stat.Gid >= ids {
		return fmt.Errorf("its owner %d:%d does not exist in the container", e.Stat.Uid, e.Stat.Gid)
	}
	if e.Stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
		return unix.Unlinkat(e.Dir, e.Name, 0) // no process listens on the socket
	}
	attributes, err := tree.Attributes(e.Dir, e.Name)
	if err != nil {
		return err
	}
	for name := range attributes {
		if !treesync.PersistentAttrs.Includes(name) {
			if err := tree.RemoveAttribute(e.Dir, e.Name, name); err != nil {
				return fmt.Errorf("attribute %s: %w", name, err)
			}
		}
	}
	if value := plainCapability(attributes[capability]); value != nil {
		return tree.SetAttribute(e.Dir, e.Name, capability, value)
	}
	return nil
}

const capability = "security.capability"

// plainCapability returns a file capability without its root id (capabilities(7), version 3), or
// nil if it has none. A capability set in a user namespace names that namespace's root by its id on
// the host. A container with other ids would ignore it.
func plainCapability(value []byte) []byte {
	const version3, version2, mask = 0x03000000, 0x02000000, 0xff000000
	if len(value) != 24 {
		return nil
	}
	magic := binary.LittleEndian.Uint32(value)
	if magic&mask != version3 {
		return nil
	}
	binary.LittleEndian.PutUint32(value, magic&^mask|version2)
	return value[:20]
}
