package rehearsal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The roles in which a program that uses this package runs again as part of hosts. os.Args[0] is the
// role.
const (
	roleSupervisor = "orrery-hosts-keeper"
	roleNewborn    = "orrery-hosts-newborn"
	roleInit       = "orrery-hosts-init"
	roleVisitor    = "orrery-hosts-visitor"
)

// runRoleCalled is whether this program has called RunRole.
var runRoleCalled bool

// RunRole runs this program's role as part of hosts, if it has one, and then does not return. main,
// or TestMain, must call it before all else.
func RunRole() {
	runRoleCalled = true
	roles := map[string]func(args []string) error{roleSupervisor: runSupervisor, roleNewborn: runNewborn,
		roleInit: runInit, roleVisitor: runVisitor}
	role, ok := roles[os.Args[0]]
	if !ok {
		return
	}
	runtime.LockOSThread() // because it enters namespaces, which apply to the thread and not to the process
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
	os.Exit(0)
}

// reexec returns a command that runs this program in a role.
func reexec(role string, args ...string) *exec.Cmd {
	if !runRoleCalled {
		panic("package hosts: main, or TestMain, does not call RunRole")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{role}, args...)
	return cmd
}

// execRole replaces this process by its program in another role, with this thread's namespaces.
func execRole(role string) error {
	return unix.Exec("/proc/self/exe", []string{role}, os.Environ())
}

// runVisitor enters the namespaces and control groups of a host, and executes a command there.
func runVisitor(args []string) error {
	group, pid, command := args[0], args[1], args[2:]
	for _, h := range hierarchies(mounted) {
		at := filepath.Join(h.dir, group)
		if h.alone {
			at = filepath.Join(at, leaf)
		}
		if err := enter(at); err != nil {
			return err
		}
	}
	nsenter := []string{"nsenter", "--target", pid, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root",
		"--wd", "--"}
	path := "/usr/bin/nsenter"
	if err := unix.Exec(path, append(nsenter, command...), os.Environ()); err != nil {
		return fmt.Errorf("%s %s: %w", path, strings.Join(command, " "), err)
	}
	return nil
}
