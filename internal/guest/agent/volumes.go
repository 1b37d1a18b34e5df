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

// A machine mounts by itself, where it comes upon it, what is mounted in the root that the host
// gives to it: each volume is a file system of its own, of this kind. It lets go of it when it is
// told, and of what it remembers of files.
var ( // but in tests
	shared = "virtiofs"
	caches = "/proc/sys/vm/drop_caches"

	finding = 50 // is how often it is tried to find a place
)

const (
	forgetting = 10                     // is how often it is tried to let go of one
	meanwhile  = 100 * time.Millisecond // is what is between two tries
	maxUsers   = 5                      // is how many are named who use a place
)

// Forget unmounts, in the namespace of init and in all that services have, what the host has
// mounted at some places, the innermost first.
func (place) Forget(ctx context.Context, places []string) error {
	for _, path := range places {
		if err := forget(ctx, path); err != nil {
			return err
		}
	}
	return dropCaches()
}

// Find comes upon what the host has mounted at some places, past what the machine remembers of them.
func (place) Find(ctx context.Context, places []string) error {
	for _, path := range places {
		if err := find(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func forget(ctx context.Context, path string) error {
	for attempt := 1; ; attempt++ {
		gone, err := unmount(path)
		if gone || err != nil {
			return err
		}
		if who := users(path); len(who) > 0 || attempt == forgetting {
			return &rpc.InUse{By: strings.Join(who, ", ")}
		}
		if err := host.Pause(ctx, meanwhile); err != nil {
			return err
		}
	}
}

// unmount unmounts what the host has mounted at a place wherever it is seen, and reports whether
// nothing of it is left.
func unmount(path string) (gone bool, err error) {
	gone = true
	for _, pid := range spaces() {
		err := rootfs.InSpace(pid, func(table func() ([]rootfs.Mounted, error)) error {
			for {
				all, err := table()
				if err != nil {
					return err
				}
				top, ok := at(path, all)
				if !ok {
					return nil
				}
				if !volume(top) {
					return &rpc.InUse{By: "what is mounted over it"}
				}
				if unix.Unmount(path, unix.UMOUNT_NOFOLLOW) != nil {
					gone = false // by what, its users tell
					return nil
				}
			}
		})
		var used *rpc.InUse
		switch {
		case errors.As(err, &used):
			return false, err
		case err != nil: // who had that namespace may have ended
			gone = false
		}
	}
	return gone, nil
}

// at returns what is mounted last at a place, if a volume is among it.
func at(path string, table []rootfs.Mounted) (top rootfs.Mounted, ok bool) {
	for _, m := range table {
		if m.At == path {
			top, ok = m, ok || volume(m)
		}
	}
	return top, ok
}

// volume reports whether something that is mounted is a volume as a whole, not a part of one that
// somebody has mounted once more.
func volume(m rootfs.Mounted) bool { return m.Kind == shared && m.Origin.Path == "/" }

// processes returns those of the machine.
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

// spaces returns for each mount namespace of the machine one process that is in it, init's first.
func spaces() (all []int) {
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

// users names processes that have something at a place open, or mapped, or are in it.
func users(path string) (all []string) {
	for _, pid := range processes() {
		if file := used(pid, path); file != "" {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			all = append(all, fmt.Sprintf("%s (process %d) with %s", strings.TrimSpace(string(name)), pid, file))
		}
		if len(all) == maxUsers {
			break
		}
	}
	return all
}

// used returns a file at or below a path that a process uses, or "".
func used(pid int, path string) string {
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

func find(ctx context.Context, path string) error {
	for attempt := 1; ; attempt++ {
		dir, err := os.Open(path + "/.") // its being opened as a directory lets the kernel mount it
		if err == nil {
			err = dir.Close()
		}
		table, unread := rootfs.MountsOf("self")
		if unread != nil {
			return unread
		}
		if top, ok := at(path, table); ok && volume(top) {
			return nil
		}
		if attempt == finding {
			return errors.Join(fmt.Errorf("no volume is seen at %s", path), err)
		}
		if err := dropCaches(); err != nil {
			return err
		}
		if err := host.Pause(ctx, meanwhile); err != nil {
			return err
		}
	}
}

// dropCaches lets the kernel forget names and what they stand for, but no content of files.
func dropCaches() error { return os.WriteFile(caches, []byte("2"), 0) }
