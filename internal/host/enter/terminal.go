package enter

import (
	"errors"
	"os"
	"strconv"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// ttyGroup is the group of terminals in Debian and its derivatives (base-passwd).
const ttyGroup = 5

// openTerminal opens both ends of a pseudo-terminal of the container, so that programs in it find
// the terminal under its name. If the container offers none, it opens one of this host.
func (c Container) openTerminal() (ours, theirs *os.File, err error) {
	ours, theirs, err = c.ownTerminal()
	if err != nil {
		return pty.Open()
	}
	return ours, theirs, nil
}

// ownTerminal opens a terminal of the container. The container's root can put anything at the path.
// So it opens only a pseudo-terminal multiplexer of the kernel (devpts of the kernel's
// documentation), and gets the other end through that.
func (c Container) ownTerminal() (ours, theirs *os.File, err error) {
	init, err := c.Hold()
	if err != nil {
		return nil, nil, err
	}
	defer init.Close()
	multiplexer, err := init.openMultiplexer()
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			unix.Close(multiplexer)
		}
	}()
	if err = unix.IoctlSetPointerInt(multiplexer, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, os.NewSyscallError("unlock a terminal", err)
	}
	// O_NOCTTY: it must not become the terminal of this process, which may lead a session without
	// one.
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(multiplexer), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		err = os.NewSyscallError("open a terminal", errno)
		return nil, nil, err
	}
	theirs = os.NewFile(peer, "terminal")
	if err = theirs.Chown(c.Root, c.Root+ttyGroup); err == nil {
		err = unix.SetNonblock(multiplexer, true) // so that closing it unblocks its readers
	}
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(multiplexer), "multiplexer"), theirs, nil
}

func (i *Init) openMultiplexer() (int, error) {
	root, err := unix.Open(i.file("root"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	if i.Ended() {
		return -1, ErrNotReady
	}
	found, err := unix.Openat2(root, "dev/pts/ptmx", &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, err
	}
	defer unix.Close(found)
	var system unix.Statfs_t
	if err := unix.Fstatfs(found, &system); err != nil {
		return -1, err
	}
	var file unix.Stat_t
	if err := unix.Fstat(found, &file); err != nil {
		return -1, err
	}
	if system.Type != unix.DEVPTS_SUPER_MAGIC || file.Mode&unix.S_IFMT != unix.S_IFCHR || file.Rdev != unix.Mkdev(5, 2) {
		return -1, errors.New("/dev/pts/ptmx is not a pseudo-terminal multiplexer")
	}
	return unix.Open("/proc/self/fd/"+strconv.Itoa(found), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
}
