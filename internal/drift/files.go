package drift

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/tree"
)

// A RoleFile is a file that a role writes to the node.
type RoleFile struct {
	host.File
	Role string
}

const asRoleFile = "as its role makes it"

// Files returns the drift of files that roles have written to a node. The number first is the
// host's user id of the node's root.
func Files(node string, root *tree.Root, first int, files []RoleFile, free IgnoreList) ([]observe.Drift, error) {
	f := collector{node: node}
	for _, want := range files {
		if free.has(want.Path) {
			continue
		}
		if err := f.file(root, first, &want); err != nil {
			return nil, err
		}
	}
	return f.all, nil
}

func (f *collector) file(root *tree.Root, first int, want *RoleFile) error {
	altered := func(as, found string) { f.add(observe.DriftFile, observe.Altered, want.Path, want.Role, as, found) }
	st, err := root.Lstat(want.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		f.add(observe.DriftFile, observe.Gone, want.Path, want.Role, asRoleFile, gone)
		return nil
	case err != nil:
		return err
	case want.Link != "":
		if says, err := root.Readlink(want.Path); err != nil || says != want.Link {
			altered("a link to "+want.Link, changed)
		}
		return nil
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		altered(asRoleFile, tree.Kind(st.Mode))
		return nil
	}
	uid, gid, err := image.LookupAccountIn([]*tree.Root{root}, want.Owner)
	if err != nil {
		altered("owned by "+want.Owner, "owned by nobody whom the node knows by that name")
		return nil
	}
	as := unix.Stat_t{Mode: unix.S_IFREG | want.Mode, Uid: uint32(uid), Gid: uint32(gid)}
	if want, found := compareAttributes(&as, st, first); found != "" {
		altered(want, found)
		return nil
	}
	if st.Size == int64(len(want.Content)) {
		text, err := root.ReadFile(want.Path, st.Size)
		if err := tree.IgnoreGone(err); err != nil && !errors.Is(err, tree.ErrTooLarge) {
			return err
		}
		if err == nil && bytes.Equal(text, want.Content) {
			return nil
		}
	}
	altered(asRoleFile, changed)
	return nil
}

// compareAttributes compares the mode and the owner of a path. It returns "" if they are equal. The number
// first is the user id of the node's root in actual.
func compareAttributes(intended, actual *unix.Stat_t, first int) (want, found string) {
	uid, gid := int(actual.Uid)-first, int(actual.Gid)-first
	switch {
	case intended.Mode&unix.S_IFMT == unix.S_IFLNK: // its mode and owner have no effect
	case intended.Mode&0o7777 != actual.Mode&0o7777:
		return fmt.Sprintf("of mode %04o", intended.Mode&0o7777), fmt.Sprintf("of mode %04o", actual.Mode&0o7777)
	case int(intended.Uid) != uid || int(intended.Gid) != gid:
		return fmt.Sprintf("owned by %d:%d", intended.Uid, intended.Gid), fmt.Sprintf("owned by %d:%d", uid, gid)
	}
	return "", ""
}
