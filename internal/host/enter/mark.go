package enter

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host/cgroup"
	"orrery/internal/host/process"
)

// callerVariable is the name of the variable that holds the process that waits for a command.
const callerVariable = "ORRERY_CALLER="

// CallerEnv returns the variable that holds the process that waits for a command. It must be the first
// in the command's environment.
func CallerEnv(caller int) string { return callerVariable + strconv.Itoa(caller) }

// KillOrphans kills the commands in a control group whose caller has ended, with all processes of
// their sessions. It returns the number of these commands.
func KillOrphans(in cgroup.Group) int {
	inside := in.Processes()
	n := 0
	for _, pid := range inside {
		if isOrphan(process.Host, pid, inside) {
			_ = unix.Kill(-pid, unix.SIGKILL)
			n++
		}
	}
	return n
}

// isOrphan reports whether a process is a command, run from outside, whose caller has ended. This
// is so if its parent is neither its caller nor another process of the container. A process that
// forges its environment can only get itself killed.
func isOrphan(table process.Table, pid int, inside []int) bool {
	stat := table.Stat(pid)
	if len(stat) < 6-3+1 || stat[6-3] != strconv.Itoa(pid) || stat[5-3] != strconv.Itoa(pid) { // it leads no session
		return false
	}
	parent, err := strconv.Atoi(stat[4-3])
	if err != nil || slices.Contains(inside, parent) {
		return false
	}
	caller, ok := callerOf(table, pid)
	return ok && caller != parent
}

// callerOf returns the process that waits for a command, from the command's environment.
func callerOf(table process.Table, pid int) (caller int, ok bool) {
	f, err := os.Open(table.File(pid, "environ"))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	const maxCallerEnvBytes = 64
	text, err := io.ReadAll(io.LimitReader(f, maxCallerEnvBytes))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), "\x00")
	number, ok := strings.CutPrefix(first, callerVariable)
	if !ok {
		return 0, false
	}
	caller, err = strconv.Atoi(number)
	return caller, err == nil
}
