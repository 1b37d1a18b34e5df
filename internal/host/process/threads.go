package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/tree/rawfile"
)

// Threads returns the threads of a process by their ids in its innermost namespace (NSpid of
// proc_pid_status(5)).
func (t Table) Threads(pid int) (map[int]int, error) {
	entries, err := os.ReadDir(t.File(pid, "task"))
	if err != nil {
		return nil, err
	}
	all := map[int]int{}
	for _, e := range entries {
		text, err := rawfile.ReadFile(t.File(pid, filepath.Join("task", e.Name(), "status")))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(text), "\n")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "NSpid:") })
		if i < 0 {
			continue
		}
		words := strings.Fields(lines[i])
		outside, err := strconv.Atoi(e.Name())
		inside, err2 := strconv.Atoi(words[len(words)-1])
		if err == nil && err2 == nil {
			all[inside] = outside
		}
	}
	return all, nil
}
