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

// A Backend is a program of the host that gives a guest what it has of files, and that somebody
// else starts: Xen's toolstack starts the QEMU of a domain. We are started in its place, and become
// it.
//
// It is root of the node's ids and of nobody else's: a user namespace has them. It sees what is in
// its cell: libraries, and the trees that it shares with the guest.
type Backend struct {
	Cell
	Program string   // path
	Space   string   // file at which the user namespace is found
	Shares  []string // directories, at the same paths, which it may write to
	Files   []Opened // files that QEMU finds open
}

// Opened is a file that QEMU finds open, in a set (add-fd of qemu(1)): it need not be allowed to
// open it itself.
type Opened struct {
	Path   string
	Set    int
	Writes bool // for writing as well
}

// InSet is the name by which QEMU opens what it finds in a set.
func InSet(set int) string { return "/dev/fdset/" + strconv.Itoa(set) }

// capabilities are those of the node's root over its own files. With others it could leave its
// cell, or change what it is in.
var capabilities = []string{"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "setfcap"}

// Become makes this process the program, with some arguments. It returns only if it cannot. Sockets
// at which the program is to listen are opened before, as there is no place in the cell for them.
func (b Backend) Become(args []string) error {
	args, err := b.opening(args)
	if err != nil {
		return err
	}
	args, handed, err := Listening(args, listen)
	if err != nil {
		return err
	}
	line, err := b.line(args)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // it is this thread that becomes the program
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	most.Cur = most.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return os.NewSyscallError("setrlimit", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil { // the memory of a guest shall be in no file
		return os.NewSyscallError("setrlimit", err)
	}
	b.Sees = append(slices.Clone(b.Sees), append([]string{b.Program, b.Space}, line.tools...)...)
	if err := b.enter(); err != nil {
		return fmt.Errorf("a cell for %s: %w", filepath.Base(b.Program), err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := host.ShutInherited(); err != nil {
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

// opening opens what the program is to find open. It stays so.
func (b Backend) opening(args []string) ([]string, error) {
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

// enter moves the calling thread into a mount namespace with the cell as its root, and with what is shared.
func (b Backend) enter() error {
	c := b.Cell
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
		if err := c.name(file); err != nil {
			return err
		}
	}
	if err := c.showItself(); err != nil {
		return err
	}
	return c.shut()
}

// name lets a set look like a file: newer versions of QEMU look whether there is one before they
// open a disk of a guest of Xen.
func (c Cell) name(file Opened) error {
	at := filepath.Join(c.At, InSet(file.Set))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, nil, 0o444)
}

// showItself lets the program find its own open files in /proc: QEMU changes the mode of a file
// there. It sees no process of another user, and nothing of the kernel.
func (c Cell) showItself() error {
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

// chain is a command line: tools of util-linux, which join the user namespace and give up
// capabilities, and then the program.
type chain struct{ args, tools []string }

func (b Backend) line(args []string) (c chain, err error) {
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

// A place where a program is to listen, and a file that it has been handed, as they are in options of QEMU's.
var (
	path = pattern.New(`(^|,)path=([^,]+)`)
	open = pattern.New(`(?:^|,)fd[=:]([0-9]+)(?:,|$)`)
)

// Listening rewrites the options of QEMU by which it would open sockets, so that it finds them
// open. It returns the numbers of all files that it is handed.
func Listening(args []string, listen func(path string) (fd int, err error)) (all []string, handed []int, err error) {
	for i, arg := range args {
		if i > 0 && args[i-1] == "-chardev" && strings.HasPrefix(arg, "socket,") {
			if at := path().FindStringSubmatch(arg); at != nil {
				fd, err := listen(at[2])
				if err != nil {
					return nil, nil, err
				}
				arg = path().ReplaceAllString(arg, "${1}fd="+strconv.Itoa(fd))
			}
		}
		if found := open().FindStringSubmatch(arg); found != nil {
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

// listen opens a socket that only root may connect to. It stays open.
func listen(path string) (fd int, err error) {
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
