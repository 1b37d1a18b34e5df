package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image/rootfs"
	"orrery/internal/transport/rpc"
)

// A volume is a file system of its own, of this kind, below the shared root. The kernel mounts it
// when a process accesses its directory. The agent unmounts volumes on request, and drops the
// kernel's caches of files.
var ( // variables, so that tests can change them
	volumeFSType   = "virtiofs"
	dropCachesFile = "/proc/sys/vm/drop_caches"

	maxMountAttempts = 50 // tries to find a volume
)

const (
	maxUnmountAttempts = 10                     // tries to unmount a volume
	retryInterval      = 100 * time.Millisecond // between two tries
	maxUsers           = 5                      // users named in an error
)

// Unmount unmounts the volumes at some places, the innermost first. It does so in the mount
// namespaces of init and of all services.
func (guest) Unmount(ctx context.Context, places []string) error {
	for _, path := range places {
		if err := unmountVolume(ctx, path); err != nil {
			return err
		}
	}
	return dropCaches()
}

// RefreshMounts makes the kernel mount the volumes at some places, and drops caches that may hide them.
func (guest) RefreshMounts(ctx context.Context, places []string) error {
	for _, path := range places {
		if err := mountVolume(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func unmountVolume(ctx context.Context, path string) error {
	for attempt := 1; ; attempt++ {
		gone, err := unmount(path)
		if gone || err != nil {
			return err
		}
		if who := usersOf(path); len(who) > 0 || attempt == maxUnmountAttempts {
			return &rpc.InUse{By: strings.Join(who, ", ")}
		}
		if err := host.Sleep(ctx, retryInterval); err != nil {
			return err
		}
	}
}

// unmount unmounts the volume at a place in all mount namespaces, and reports whether it is gone
// everywhere.
func unmount(path string) (gone bool, err error) {
	gone = true
	for _, pid := range mountNamespaces() {
		err := rootfs.InMountNamespace(pid, func(table func() ([]rootfs.MountInfo, error)) error {
			for {
				all, err := table()
				if err != nil {
					return err
				}
				top, ok := topMount(path, all)
				if !ok {
					return nil
				}
				if !isVolume(top) {
					return &rpc.InUse{By: "a mount over it"}
				}
				if unix.Unmount(path, unix.UMOUNT_NOFOLLOW) != nil {
					gone = false // the caller looks for the users
					return nil
				}
			}
		})
		var used *rpc.InUse
		switch {
		case errors.As(err, &used):
			return false, err
		case err != nil: // the process of that namespace may have ended
			gone = false
		}
	}
	return gone, nil
}

// topMount returns the last mount at a place. It reports whether a volume is among the mounts there.
func topMount(path string, table []rootfs.MountInfo) (top rootfs.MountInfo, ok bool) {
	for _, m := range table {
		if m.At == path {
			top, ok = m, ok || isVolume(m)
		}
	}
	return top, ok
}

// isVolume reports whether a mount is a whole volume, and not a bind mount of a part of one.
func isVolume(m rootfs.MountInfo) bool { return m.Kind == volumeFSType && m.Source.Path == "/" }

// processes returns the ids of all processes of the machine, in ascending order.
func processes() (all []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	slices.Sort(all)
	return all
}

// mountNamespaces returns one process for each mount namespace of the machine, starting with init.
func mountNamespaces() (all []int) {
	seen := map[string]bool{}
	for _, pid := range processes() {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err == nil && !seen[space] {
			seen[space] = true
			all = append(all, pid)
		}
	}
	return all
}

// usersOf returns descriptions of the processes that have a file at a place open or mapped, or are in
// it.
func usersOf(path string) (all []string) {
	for _, pid := range processes() {
		if file := usedFile(pid, path); file != "" {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			all = append(all, fmt.Sprintf("%s (process %d) with %s", strings.TrimSpace(string(name)), pid, file))
		}
		if len(all) == maxUsers {
			break
		}
	}
	return all
}

// usedFile returns a file at or below a path that a process uses, or "".
func usedFile(pid int, path string) string {
	of := fmt.Sprintf("/proc/%d/", pid)
	links := []string{of + "cwd", of + "root"}
	for _, dir := range []string{of + "fd", of + "map_files"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			links = append(links, filepath.Join(dir, e.Name()))
		}
	}
	for _, link := range links {
		if file, _ := os.Readlink(link); file == path || strings.HasPrefix(file, path+"/") {
			return file
		}
	}
	return ""
}

func mountVolume(ctx context.Context, path string) error {
	for attempt := 1; ; attempt++ {
		dir, err := os.Open(path + "/.") // opening it as a directory makes the kernel mount it
		if err == nil {
			err = dir.Close()
		}
		table, unread := rootfs.MountsOf("self")
		if unread != nil {
			return unread
		}
		if top, ok := topMount(path, table); ok && isVolume(top) {
			return nil
		}
		if attempt == maxMountAttempts {
			return errors.Join(fmt.Errorf("the volume is not visible at %s", path), err)
		}
		if err := dropCaches(); err != nil {
			return err
		}
		if err := host.Sleep(ctx, retryInterval); err != nil {
			return err
		}
	}
}

// dropCaches drops the kernel's caches of directory entries and inodes, but not of file contents.
func dropCaches() error { return os.WriteFile(dropCachesFile, []byte("2"), 0) }
