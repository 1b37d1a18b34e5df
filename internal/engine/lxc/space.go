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

// spaces returns a process for each mount namespace that only some of the node's processes have,
// other than those of some processes.
func (p processes) spaces(but ...int) []int {
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

// directory opens a directory of the node in whose namespace the thread is, and makes what is
// missing of it as the node's root would. No link is followed: LXC does not when the node starts,
// and what the node has put there shall not lead anybody elsewhere.
func directory(path string, first int) (*os.File, error) {
	root, err := tree.Open("/")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.MakeDown(path, first, first)
}

// command returns the name of a process and its id as the node knows it.
func command(pid int) string {
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
