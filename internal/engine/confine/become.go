package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// A Backend is a host program that serves files to a guest and that is started by another program:
// Xen's toolstack starts the QEMU of a domain. The toolstack starts this program in its place,
// which then becomes the backend.
//
// The backend is root of the node's ids only, in a user namespace. It sees only what is in its
// sandbox: libraries, and the trees that it shares with the guest.
type Backend struct {
	Sandbox
	Program string      // path
	Space   string      // path of the user namespace
	Shares  []string    // directories, at the same paths, to which it may write
	Files   []FDSetFile // files that QEMU receives open
}

// FDSetFile is a file that QEMU receives open in an fdset (add-fd of qemu(1)), so that it needs no
// right to open the file.
type FDSetFile struct {
	Path   string
	Set    int
	Writes bool // opened for writing, too
}

// FDSetPath returns the path by which QEMU opens a file in an fdset.
func FDSetPath(set int) string { return "/dev/fdset/" + strconv.Itoa(set) }

// capabilities are those that the node's root needs for its own files. With others, the program
// could leave its sandbox or change what is in it.
var capabilities = []string{"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "setfcap"}

// Exec replaces this process by the program, with args. It returns only if that fails. It opens
// sockets on which the program listens before, because the sandbox has no place for them.
func (b Backend) Exec(args []string) error {
	args, err := b.openFiles(args)
	if err != nil {
		return err
	}
	args, handed, err := RewriteSockets(args, listenRootOnly)
	if err != nil {
		return err
	}
	line, err := b.wrapCommand(args)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // this thread becomes the program
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	most.Cur = most.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return os.NewSyscallError("setrlimit", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil { // guest memory must not be in a core file
		return os.NewSyscallError("setrlimit", err)
	}
	b.Sees = append(slices.Clone(b.Sees), append([]string{b.Program, b.Space}, line.tools...)...)
	if err := b.enter(); err != nil {
		return fmt.Errorf("sandbox for %s: %w", filepath.Base(b.Program), err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := host.CloseInheritedOnExec(); err != nil {
		return err
	}
	for _, fd := range handed {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return &os.PathError{Op: "run", Path: line.args[0],
		Err: unix.Exec(line.args[0], line.args, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"})}
}

// openFiles opens the files that QEMU receives open, and leaves them open.
func (b Backend) openFiles(args []string) ([]string, error) {
	args = slices.Clone(args)
	for _, file := range b.Files {
		mode := unix.O_RDONLY
		if file.Writes {
			mode = unix.O_RDWR
		}
		fd, err := unix.Open(file.Path, mode|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: file.Path, Err: err}
		}
		args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=%d", fd, file.Set))
	}
	return args, nil
}

// enter moves the calling thread into a mount namespace with the sandbox, including the shared
// directories, as its root.
func (b Backend) enter() error {
	c := b.Sandbox
	if err := c.fill(); err != nil {
		return err
	}
	for _, dir := range b.Shares {
		at := filepath.Join(c.At, dir)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(dir, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return &os.PathError{Op: "bind", Path: dir, Err: err}
		}
	}
	for _, file := range b.Files {
		if err := c.addFDSetName(file); err != nil {
			return err
		}
	}
	if err := c.mountProc(); err != nil {
		return err
	}
	return c.pivotRoot()
}

// addFDSetName creates a file with the name of an fdset, because newer versions of QEMU look for the file
// before they open a disk of a Xen guest.
func (c Sandbox) addFDSetName(file FDSetFile) error {
	at := filepath.Join(c.At, FDSetPath(file.Set))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, nil, 0o444)
}

// mountProc mounts a /proc in which the program finds its own open files, because QEMU changes a
// file's mode there. It shows no process of another user, and nothing of the kernel.
func (c Sandbox) mountProc() error {
	at := filepath.Join(c.At, "proc")
	if err := os.MkdirAll(at, 0o555); err != nil {
		return err
	}
	if err := unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"hidepid=2,subset=pid"); err != nil {
		return &os.PathError{Op: "mount", Path: at, Err: err}
	}
	return nil
}

// wrappedCommand is a command line: tools of util-linux that join the user namespace and drop capabilities,
// and then the program.
type wrappedCommand struct{ args, tools []string }

func (b Backend) wrapCommand(args []string) (c wrappedCommand, err error) {
	for _, name := range []string{"nsenter", "setpriv"} {
		path, err := exec.LookPath(name)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return c, problem.New(problem.Unable, "%s is not installed on this host", name).Try("install the package util-linux")
		}
		c.tools = append(c.tools, path)
	}
	c.args = []string{
		c.tools[0], "--user=" + b.Space, "--setuid=0", "--setgid=0", "--",
		c.tools[1], "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all,+" + strings.Join(capabilities, ",+"), "--",
		b.Program,
	}
	c.args = append(c.args, args...)
	return c, nil
}

// The path of a socket to listen on, and the number of a received file, in options of QEMU.
var (
	socketPathPattern = pattern.New(`(^|,)path=([^,]+)`)
	passedFDPattern   = pattern.New(`(?:^|,)fd[=:]([0-9]+)(?:,|$)`)
)

// RewriteSockets rewrites the options by which QEMU would open sockets, so that it receives them open.
// It returns the numbers of all files that QEMU receives.
func RewriteSockets(args []string, listen func(path string) (fd int, err error)) (all []string, handed []int,
	err error) {
	for i, arg := range args {
		if i > 0 && args[i-1] == "-chardev" && strings.HasPrefix(arg, "socket,") {
			if at := socketPathPattern().FindStringSubmatch(arg); at != nil {
				fd, err := listen(at[2])
				if err != nil {
					return nil, nil, err
				}
				arg = socketPathPattern().ReplaceAllString(arg, "${1}fd="+strconv.Itoa(fd))
			}
		}
		if found := passedFDPattern().FindStringSubmatch(arg); found != nil {
			fd, err := strconv.Atoi(found[1])
			if err != nil {
				return nil, nil, err
			}
			handed = append(handed, fd)
		}
		all = append(all, arg)
	}
	return all, handed, nil
}

// listenRootOnly opens a listening socket to which only root may connect, and leaves it open.
func listenRootOnly(path string) (fd int, err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return 0, err
	}
	defer l.Close() //nolint:errcheck // a copy of it stays
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return 0, err
	}
	f, err := l.File()
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // a copy of it stays
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
}
