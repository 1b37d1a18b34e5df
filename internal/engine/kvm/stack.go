package kvm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"orrery/internal/engine/vm"
	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/tree"
	"path/filepath"
	"slices"
)

// A shownFiles records which files of the private layer a guest with a root disk has been shown, by path,
// with modification time, size and mode. Only the host writes to the private layer of such a guest.
type shownFiles map[string]string

// maxFiles limits the number of files in a seen.
const maxFiles = 1 << 14

// writeStack writes for such a guest what is newer in its root than on its disk, and what is mounted
// there. It returns what the guest is shown now, to be stored once the guest has started.
func (l *launch) writeStack(ctx context.Context) (shownFiles, error) {
	now, err := listFiles(ctx, l.m.Private())
	if err != nil {
		return nil, err
	}
	before, err := host.ReadJSON[shownFiles](filepath.Join(l.m.Disks(), vm.SeenFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := boot.Stack{Start: rand.Text(), Fresh: now.changedSince(before)}
	mounts, err := l.nodes.Mounts(l.r)
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		s.Binds = append(s.Binds, m.Path)
	}
	return now, vm.WriteGuestFile(l.nodes.Dirs, l.m.Ref, boot.StackFile, s)
}

// store stores what the guest of a machine has been shown.
func (s shownFiles) store(m machine) error {
	return host.WriteJSON(filepath.Join(m.Disks(), vm.SeenFile), 0o600, s)
}

// listFiles lists the files of a private layer.
func listFiles(ctx context.Context, private string) (shownFiles, error) {
	root, err := tree.Open(private)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all := shownFiles{}
	bounds := tree.DefaultBounds
	bounds.All = maxFiles
	err = root.Walk(ctx, bounds, func(e *tree.Entry) error {
		switch {
		case e.Path == vm.DiskDir:
			return tree.SkipDir
		case !e.IsDir():
			all[e.Path] = fmt.Sprintf("%d.%09d %d %o", e.Stat.Mtim.Sec, e.Stat.Mtim.Nsec, e.Stat.Size, e.Stat.Mode)
		}
		return nil
	})
	return all, err
}

// changedSince returns the sorted paths of files that are new or changed since before.
func (s shownFiles) changedSince(before shownFiles) []string {
	var all []string
	for path, how := range s {
		if before[path] != how {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}
