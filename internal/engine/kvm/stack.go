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

// A seen records which files of the private layer a guest with a root disk has been shown, by path,
// with modification time, size and mode. Only the host writes to the private layer of such a guest.
type seen map[string]string

// maxFiles limits the number of files in a seen.
const maxFiles = 1 << 14

// tellStack writes for such a guest what is newer in its root than on its disk, and what is mounted
// there. It returns what the guest is shown now, to be stored once the guest has started.
func (l *launch) tellStack(ctx context.Context) (seen, error) {
	now, err := survey(ctx, l.m.Private())
	if err != nil {
		return nil, err
	}
	before, err := host.ReadJSON[seen](filepath.Join(l.m.Disks(), vm.SeenFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := boot.Stack{Start: rand.Text(), Fresh: now.after(before)}
	mounts, err := l.nodes.Mounts(l.r)
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		s.Binds = append(s.Binds, m.Path)
	}
	return now, vm.Tell(l.nodes.Dirs, l.m.Ref, boot.StackFile, s)
}

// keep stores what the guest of a machine has been shown.
func (s seen) keep(m machine) error {
	return host.WriteJSON(filepath.Join(m.Disks(), vm.SeenFile), 0o600, s)
}

// survey lists the files of a private layer.
func survey(ctx context.Context, private string) (seen, error) {
	root, err := tree.Open(private)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all := seen{}
	bounds := tree.Ample
	bounds.All = maxFiles
	err = root.Walk(ctx, bounds, func(e *tree.Entry) error {
		switch {
		case e.Path == vm.Hold:
			return tree.SkipDir
		case !e.IsDir():
			all[e.Path] = fmt.Sprintf("%d.%09d %d %o", e.Stat.Mtim.Sec, e.Stat.Mtim.Nsec, e.Stat.Size, e.Stat.Mode)
		}
		return nil
	})
	return all, err
}

// after returns the sorted paths of files that are new or changed since before.
func (s seen) after(before seen) []string {
	var all []string
	for path, how := range s {
		if before[path] != how {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}
