package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/image/rootfs"
)

// Writers returns the nodes ("SITE/ID") that can write to a directory of the host, or to part of
// it. It reads the mount tables of all processes on this host.
func Writers(dir string) ([]string, error) {
	origins, err := rootfs.MountSourcesOf(dir)
	if err != nil {
		return nil, err
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var nodes []string
	seen := map[string]bool{}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		node := nodeOf(p.Name())
		space, _ := os.Readlink(filepath.Join("/proc", p.Name(), "ns/mnt"))
		if node == "" || seen[node+space] {
			continue
		}
		seen[node+space] = true
		mounts, err := rootfs.MountsOf(p.Name())
		if err != nil {
			continue // the process has ended
		}
		writes := func(m rootfs.MountInfo) bool { return !m.ReadOnly && origins[0].Contains(m.Source) }
		if slices.ContainsFunc(mounts, writes) {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

// nodeOf returns the node to whose control group a process belongs, or whose monitor the process
// is.
func nodeOf(process string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", process, "cgroup"))
	for line := range strings.Lines(string(text)) {
		_, group, ok := strings.Cut(strings.TrimSpace(line), ":/orrery/")
		parts := strings.SplitN(group, "/", 3)
		if ok && len(parts) >= 2 {
			return fmt.Sprintf("%s/%s", parts[0], strings.TrimSuffix(parts[1], ".monitor"))
		}
	}
	return ""
}
