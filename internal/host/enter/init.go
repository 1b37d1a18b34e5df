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

// An Init is the first process of a container, held by a descriptor (pidfd_open(2)). Another
// process that gets its PID later is not mistaken for it.
type Init struct {
	PID    int
	fd     int
	status map[string]string // /proc/PID/status at the time of the verification
}

// ErrNotReady means that a process is not, or not yet, the init of a container. LXC's child becomes
// the init by execve(2), after it has its namespaces and its root directory.
var ErrNotReady = errors.New("not the init of a container")

// OpenInit holds the init of a container by its PID, and verifies it. Monitor is the process that
// started the init, which the caller knows to be root's. UidMap is the line of its user namespace
// in /proc/PID/uid_map, with single spaces. Only root of this host can give these properties to a
// process.
func OpenInit(pid, monitor int, uidMap string) (*Init, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, os.NewSyscallError("pidfd_open", err))
	}
	i := &Init{PID: pid, fd: fd}
	err = i.verify(monitor, uidMap)
	if err == nil && i.Ended() { // the values read may be those of another process
		err = fmt.Errorf("%w: it has ended", ErrNotReady)
	}
	if err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// Open opens a file of the process in /proc.
func (i *Init) Open(name string) (*os.File, error) {
	f, err := os.Open(i.file(name))
	if err == nil && i.Ended() { // the file is that of another process
		f.Close()
		return nil, ErrNotReady
	}
	return f, err
}

// Close releases the process.
func (i *Init) Close() { _ = unix.Close(i.fd) }

// Ended reports whether the process has ended.
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
		return fmt.Errorf("%w: not started by process %d", ErrNotReady, monitor)
	}
	if numbers := strings.Fields(status["NSpid"]); len(numbers) < 2 || numbers[len(numbers)-1] != "1" {
		return fmt.Errorf("%w: not the first process of a PID namespace", ErrNotReady)
	}
	if same, err := sameFile(i.file("exe"), "/proc/"+strconv.Itoa(monitor)+"/exe"); err != nil || same {
		return fmt.Errorf("%w: still a copy of its monitor", ErrNotReady)
	}
	for _, space := range []string{"ns/mnt", "ns/pid", "ns/net", "ns/uts", "ns/ipc"} {
		if same, err := sameFile(i.file(space), "/proc/self/"+space); err != nil || same {
			return fmt.Errorf("%w: it shares %s with the host", ErrNotReady, space)
		}
	}
	text, err := rawfile.ReadFile(i.file("uid_map"))
	if err != nil {
		return err
	}
	if its := strings.Join(strings.Fields(string(text)), " "); its != uidMap {
		return fmt.Errorf("%w: user ids are %q instead of %q", ErrNotReady, its, uidMap)
	}
	return nil
}

func (i *Init) file(name string) string { return "/proc/" + strconv.Itoa(i.PID) + "/" + name }

// readStatus returns the fields of /proc/PID/status (proc_pid_status(5)).
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

// droppedCapabilities returns the capabilities that the container lacks, because LXC dropped them from its
// init.
func (i *Init) droppedCapabilities() ([]uintptr, error) {
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

// profile returns the AppArmor profile that confines the container, or "" if there is none.
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

// sameFile reports whether two paths of /proc refer to the same file.
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
