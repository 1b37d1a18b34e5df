package kvm

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"orrery/internal/host/process"
)

// taps are ends of links, in the order in which a QEMU has opened them.
type taps []*os.File

// tapsOf duplicates the taps of a QEMU. Even a QEMU that its guest has taken over can offer only
// taps that it already has.
func tapsOf(qemu int) (all taps, err error) {
	held, err := process.Open(qemu)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	at := process.Host.File(qemu, "fd")
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		to, _ := os.Readlink(filepath.Join(at, e.Name()))
		if fd, err := strconv.Atoi(e.Name()); err == nil && to == "/dev/net/tun" {
			numbers = append(numbers, fd)
		}
	}
	slices.Sort(numbers)
	for _, fd := range numbers {
		f, err := held.CopyFD(fd)
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// split returns the taps that are ends of link, and the others.
func (t taps) split(link string) (its, others taps) {
	for _, f := range t {
		if tapOf(f) == link {
			its = append(its, f)
		} else {
			others = append(others, f)
		}
	}
	return its, others
}

func (t taps) close() {
	for _, f := range t {
		f.Close() //nolint:errcheck // another has it
	}
}

// tapOf returns the interface name of a tap, or "" if f is none.
func tapOf(f *os.File) string {
	var ifreq unix.Ifreq
	if err := unix.IoctlIfreq(int(f.Fd()), unix.TUNGETIFF, &ifreq); err != nil {
		return ""
	}
	return ifreq.Name()
}
