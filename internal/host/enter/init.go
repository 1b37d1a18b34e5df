package enter

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/tree/rawfile"
)

// An Init is the first process of a container, held by a descriptor (pidfd_open(2)): whoever gets
// its number after its end is not taken for it.
type Init struct {
	PID    int
	fd     int
	status map[string]string // of /proc/PID/status, as it was when it was verified
}

// ErrNotReady says that a process is not the init of a container, or not yet: LXC's child becomes
// it by execve(2), when it has its namespaces and its root.
var ErrNotReady = errors.New("it is not the init of a container")

// Hold holds the init of a container by its number. Monitor is the process that has started it, of
// which the caller knows that it is root's, and uidMap the line of its user namespace in
// /proc/PID/uid_map, by single spaces. Nobody but root of this host can give these to a process.
func Hold(pid, monitor int, uidMap string) (*Init, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, os.NewSyscallError("pidfd_open", err))
	}
	i := &Init{PID: pid, fd: fd}
	err = i.verify(monitor, uidMap)
	if err == nil && i.Ended() { // what was read may have been of another process
		err = fmt.Errorf("%w: it has ended", ErrNotReady)
	}
	if err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// Open opens a file that /proc has of the process.
func (i *Init) Open(name string) (*os.File, error) {
	f, err := os.Open(i.file(name))
	if err == nil && i.Ended() { // it is of another process
		f.Close()
		return nil, ErrNotReady
	}
	return f, err
}

// Close lets go of the process.
func (i *Init) Close() { _ = unix.Close(i.fd) }

// Ended reports whether it has ended.
func (i *Init) Ended() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(i.fd), Events: unix.POLLIN}}, 0)
	return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
}

func (i *Init) verify(monitor int, uidMap string) error {
	status, err := i.readStatus()
	if err != nil {
		return err
	}
	i.status = status
	if status["PPid"] != strconv.Itoa(monitor) {
		return fmt.Errorf("%w: process %d has not started it", ErrNotReady, monitor)
	}
	if numbers := strings.Fields(status["NSpid"]); len(numbers) < 2 || numbers[len(numbers)-1] != "1" {
		return fmt.Errorf("%w: it is not the first process of a namespace", ErrNotReady)
	}
	if same, err := sameFile(i.file("exe"), "/proc/"+strconv.Itoa(monitor)+"/exe"); err != nil || same {
		return fmt.Errorf("%w: it is still a copy of its monitor", ErrNotReady)
	}
	for _, space := range []string{"ns/mnt", "ns/pid", "ns/net", "ns/uts", "ns/ipc"} {
		if same, err := sameFile(i.file(space), "/proc/self/"+space); err != nil || same {
			return fmt.Errorf("%w: it has no %s of its own", ErrNotReady, space)
		}
	}
	text, err := rawfile.ReadFile(i.file("uid_map"))
	if err != nil {
		return err
	}
	if its := strings.Join(strings.Fields(string(text)), " "); its != uidMap {
		return fmt.Errorf("%w: its user ids are %q instead of %q", ErrNotReady, its, uidMap)
	}
	return nil
}

func (i *Init) file(name string) string { return "/proc/" + strconv.Itoa(i.PID) + "/" + name }

// readStatus returns /proc/PID/status, by name (proc_pid_status(5)).
func (i *Init) readStatus() (map[string]string, error) {
	text, err := rawfile.ReadFile(i.file("status"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all, nil
}

// dropped returns the capabilities that the container does not have, as LXC took them from its init.
func (i *Init) dropped() ([]uintptr, error) {
	bounding, err := strconv.ParseUint(i.status["CapBnd"], 16, 64)
	if err != nil {
		return nil, err
	}
	var all []uintptr
	for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
		if bounding&(1<<capability) == 0 {
			all = append(all, capability)
		}
	}
	return all, nil
}

// profile returns the AppArmor profile that confines the container, or "" if none does.
func (i *Init) profile() string {
	text, err := rawfile.ReadFile(i.file("attr/apparmor/current"))
	if err != nil {
		return ""
	}
	label, _, _ := strings.Cut(strings.TrimRight(string(text), "\n\x00"), " (")
	if label == "unconfined" {
		return ""
	}
	return label
}

// sameFile reports whether two paths of /proc lead to one file.
func sameFile(a, b string) (bool, error) {
	var one, other unix.Stat_t
	if err := unix.Stat(a, &one); err != nil {
		return false, err
	}
	if err := unix.Stat(b, &other); err != nil {
		return false, err
	}
	return one.Dev == other.Dev && one.Ino == other.Ino, nil
}
