package test

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// Maximum costs of commands on a site of eight nodes, in system calls of the program itself. Other
// work on the machine hardly affects this number. The limits are a quarter above the values of 27
// November 2026, at load 5. bench/guard notices smaller slowdowns.
var allowedCalls = map[string]int{"up": 21000, "plan": 2400, "down": 17000}

func TestWork(t *testing.T) {
	s := newSite(t, "it-work", `
[network.lan]
subnet  = "10.99.38.0/24"
gateway = "10.99.38.254"
[image.debian]
suite = "bookworm"
[node."n{1..8}"]
id = 1
`, nil)
	s.do("up") // builds the image if it does not exist
	s.do("down")
	fewest := map[string]int{}
	for range 3 {
		for _, verb := range []string{"up", "plan", "down"} {
			cmd, out, errs := s.command(verb)
			calls, err := systemCalls(t, cmd)
			if err != nil {
				t.Fatalf("orrery %s: %v\n%s%s", verb, err, out, errs)
			}
			if before, ok := fewest[verb]; !ok || calls < before {
				fewest[verb] = calls
			}
		}
	}
	for verb, allowed := range allowedCalls {
		figure := fmt.Sprintf("%s of 8 nodes makes %d system calls", verb, fewest[verb])
		t.Log(figure)
		if fewest[verb] > allowed {
			t.Errorf("%s: %d are allowed", figure, allowed)
		}
	}
}

// systemCalls runs a program to its end and returns how many system calls all of its threads have
// made (perf_event_open(2)). It leaves out those with which a Go thread waits for another, and
// those of child processes.
func systemCalls(t *testing.T, cmd *exec.Cmd) (int, error) {
	t.Helper()
	event := tracepoint(t)
	// The shell waits until it is counted, and then executes the program.
	cmd.Args = append([]string{"sh", "-c", `read go && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	begin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	counter, err := countCalls(event, cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatal(err)
	}
	defer counter.Close()
	if _, err := io.WriteString(begin, "\n"); err != nil {
		t.Fatal(err)
	}
	begin.Close()
	failed := cmd.Wait()
	var count [8]byte
	if _, err := io.ReadFull(counter, count[:]); err != nil {
		t.Fatal(err)
	}
	return int(binary.NativeEndian.Uint64(count[:])), failed
}

// perfInheritThread is a bit of perf_event_attr that package unix lacks: new threads are counted,
// too, but other processes are not.
const perfInheritThread = 1 << 35

// countCalls starts to count the calls of a process as soon as it executes a program.
func countCalls(event uint64, pid int) (*os.File, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_TRACEPOINT, Config: event, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitEnableOnExec | perfInheritThread,
	}
	fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("perf_event_open", err)
	}
	waiting := []int{unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_EPOLL_PWAIT, unix.SYS_TGKILL,
		unix.SYS_RT_SIGRETURN, unix.SYS_GETPID, unix.SYS_MADVISE}
	var others []string
	for _, call := range waiting {
		others = append(others, "id != "+strconv.Itoa(call))
	}
	filter, err := unix.BytePtrFromString(strings.Join(others, " && "))
	if err != nil {
		return nil, err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_SET_FILTER,
		uintptr(unsafe.Pointer(filter))); errno != 0 {
		return nil, os.NewSyscallError("PERF_EVENT_IOC_SET_FILTER", errno)
	}
	return os.NewFile(uintptr(fd), "counter"), nil
}

// tracepoint returns the number of the system call event. It mounts tracefs where no other process
// sees it.
func tracepoint(t *testing.T) uint64 {
	t.Helper()
	dir := t.TempDir()
	var text []byte
	err := host.OnLockedThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return os.NewSyscallError("mount", err)
		}
		if err := unix.Mount("orrery-test", dir, "tracefs", 0, ""); err != nil {
			return os.NewSyscallError("mount", err)
		}
		text, err = os.ReadFile(filepath.Join(dir, "events/raw_syscalls/sys_enter/id"))
		return err
	})
	if err != nil {
		t.Skip("this kernel has no tracepoint of system calls:", err)
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
