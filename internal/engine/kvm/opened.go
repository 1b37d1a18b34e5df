package kvm

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"orrery/internal/image/rootfs"
	"orrery/internal/text/sanitize"
)

// maxNamed limits how many open files below a volume a message names.
const maxNamed = 3

// openFilesBelow returns, for a message, the files that virtiofsd has open below a mount of the node's
// root, or "" if none. The guest has chosen the names, so they are sanitized.
func (s *remounting) openFilesBelow(at string) string {
	table, err := s.volumeMounts()
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(table, func(m rootfs.MountInfo) bool { return m.At == at })
	if i < 0 {
		return ""
	}
	mount := fmt.Sprintf("mnt_id:\t%d\n", table[i].ID) // proc_pid_fdinfo(5)
	dir := fmt.Sprintf("/proc/%d/", s.sharer)
	entries, _ := os.ReadDir(dir + "fd")
	var names []string
	for _, e := range entries {
		if text, err := os.ReadFile(dir + "fdinfo/" + e.Name()); err != nil || !strings.Contains(string(text), mount) {
			continue
		}
		if len(names) == maxNamed {
			return strings.Join(names, ", ") + " and more"
		}
		if name, err := os.Readlink(dir + "fd/" + e.Name()); err == nil {
			names = append(names, sanitize.Line(name))
		}
	}
	return strings.Join(names, ", ")
}
