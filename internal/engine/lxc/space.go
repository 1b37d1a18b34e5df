package lxc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"orrery/internal/tree"
	"orrery/internal/tree/rawfile"
)

// mountNamespaces returns one process for each mount namespace of the node's processes, except the
// namespaces of the processes in but.
func (p processes) mountNamespaces(but ...int) []int {
	seen := map[string]bool{"": true}
	space := func(pid int) string {
		name, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		return name
	}
	for _, pid := range but {
		seen[space(pid)] = true
	}
	var all []int
	for _, pid := range p.group().Processes() {
		if name := space(pid); !seen[name] {
			seen[name] = true
			all = append(all, pid)
		}
	}
	return all
}

// openDirectory opens a directory in the mount namespace of the calling thread, which is the node's. It
// creates missing directories as the node's root would. It follows no link, as LXC does not when
// the node starts, so that links made by the node cannot redirect it.
func openDirectory(path string, first int) (*os.File, error) {
	root, err := tree.Open("/")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.MkdirAllNoFollow(path, first, first)
}

// commandName returns the name of a process and its id inside the node.
func commandName(pid int) string {
	name, err := rawfile.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	inside := strconv.Itoa(pid)
	status, _ := rawfile.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(status) {
		if ids, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			if fields := strings.Fields(string(ids)); len(fields) > 0 {
				inside = fields[len(fields)-1]
			}
		}
	}
	return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), inside)
}
