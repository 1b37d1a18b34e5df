package lxc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"orrery/internal/image/rootfs"
)

// usersOf returns the names of processes on this host that use files on the mounts, each with one
// of those files. It looks at all processes, because a process from outside the node, such as an
// administrator's shell, keeps a mount busy as well.
func usersOf(mounts []rootfs.MountInfo) []string {
	on := map[uint64]bool{}
	for _, m := range mounts {
		on[m.ID] = true
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		if file, ok := usedFile(filepath.Join("/proc", p.Name()), on); ok {
			names = append(names, fmt.Sprintf("%s with %s", commandName(pid), file))
		}
	}
	slices.Sort(names)
	return names
}

// usedFile returns a file on one of the mounts that a process uses as its root, working directory, open
// file or mapping.
func usedFile(process string, on map[uint64]bool) (string, bool) {
	links := []string{filepath.Join(process, "root"), filepath.Join(process, "cwd")}
	for _, dir := range []string{"fd", "map_files"} {
		entries, _ := os.ReadDir(filepath.Join(process, dir))
		for _, e := range entries {
			links = append(links, filepath.Join(process, dir, e.Name()))
		}
	}
	for _, link := range links {
		if id, err := rootfs.MountID(link); err == nil && on[id] {
			file, _ := os.Readlink(link)
			return file, true
		}
	}
	return "", false
}
