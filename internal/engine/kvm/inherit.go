package kvm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host/process"
)

// inherit opens what the QEMU that takes a machine over is handed of the one that has it: the ends of links. Should a guest have
// taken that one over, it can give nothing but what it has.
func (m machine) inherit(open handed, r *nodedir.Record) error {
	held, err := process.Hold(m.qemu())
	if err != nil {
		return err
	}
	defer held.Close()
	taps, err := m.openAs(held, "/dev/net/tun")
	if err != nil {
		return err
	}
	for _, nic := range r.NICs {
		its := slices.DeleteFunc(slices.Clone(taps), func(f *os.File) bool { return tapOf(f) != nic.HostEnd })
		if len(its) == 0 {
			closeAll(taps)
			return fmt.Errorf("it has not got the link %s", nic.HostEnd)
		}
		taps = slices.DeleteFunc(taps, func(f *os.File) bool { return slices.Contains(its, f) })
		open.link(nic, its)
	}
	closeAll(taps)
	return nil
}

// openAs takes what QEMU has open by a name, in the order of its numbers.
func (m machine) openAs(held process.Held, name string) (all []*os.File, err error) {
	at := process.Host.File(m.qemu(), "fd")
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		to, _ := os.Readlink(filepath.Join(at, e.Name()))
		if fd, err := strconv.Atoi(e.Name()); err == nil && to == name {
			numbers = append(numbers, fd)
		}
	}
	slices.Sort(numbers)
	for _, fd := range numbers {
		f, err := held.Take(fd)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// tapOf returns the name of the tap that a file is an end of.
func tapOf(f *os.File) string {
	var is unix.Ifreq
	if err := unix.IoctlIfreq(int(f.Fd()), unix.TUNGETIFF, &is); err != nil {
		return ""
	}
	return is.Name()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close() //nolint:errcheck // another has it
	}
}
