// Package numa reads the memory layout of this machine from sysfs.
//
// It returns which processors are near which memory, and how much memory is reserved as large
// pages.
package numa

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/observe"
)

// Sys is the mount point of sysfs.
const Sys = "/sys"

// Nodes returns the NUMA nodes that have processors (sysfs-devices-node).
func Nodes(sys string) (all []observe.Numa) {
	found, err := filepath.Glob(filepath.Join(sys, "devices/system/node/node[0-9]*"))
	if err != nil {
		return nil
	}
	for _, dir := range found {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if online := read(dir, "cpulist"); err == nil && online != "" {
			all = append(all, observe.Numa{ID: id, Online: online, Hugepages: pages(filepath.Join(dir, "hugepages"))})
		}
	}
	slices.SortFunc(all, func(a, b observe.Numa) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Hugepages returns the large pages of each size that the machine has, on all NUMA nodes together.
func Hugepages(sys string) []observe.Hugepages {
	return pages(filepath.Join(sys, "kernel/mm/hugepages"))
}

// pages returns the large pages of each size that a directory of sysfs lists. The kernel counts
// reservations only for the whole machine, not for each NUMA node.
func pages(dir string) (all []observe.Hugepages) {
	found, err := filepath.Glob(filepath.Join(dir, "hugepages-*kB"))
	if err != nil {
		return nil
	}
	for _, dir := range found {
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(dir), "hugepages-"), "kB"), 10, 64)
		if err != nil {
			continue
		}
		p := observe.Hugepages{Size: kib << 10, Total: number(dir, "nr_hugepages"),
			Free: number(dir, "free_hugepages") - number(dir, "resv_hugepages")}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b observe.Hugepages) int { return cmp.Compare(a.Size, b.Size) })
	return all
}

func read(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(text))
}

func number(dir, name string) int64 {
	n, _ := strconv.ParseInt(read(dir, name), 10, 64)
	return n
}
