package kvm

import (
	"errors"
	"fmt"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/network/ends"
	"orrery/internal/site/spec"
	"os"

	"golang.org/x/sys/unix"
)

// handed are files that QEMU is to find open, by the names that its command line has for them.
type handed map[string]*os.File

// as returns the files in the order of names.
func (h handed) as(names []string) (all []*os.File, err error) {
	for _, name := range names {
		if h[name] == nil {
			return nil, fmt.Errorf("QEMU is to be handed %s, and nobody has opened it", name)
		}
		all = append(all, h[name])
	}
	if len(h) != len(all) {
		return nil, fmt.Errorf("of %d files that were opened for QEMU, it is told of %d", len(h), len(all))
	}
	return all, nil
}

func (h handed) close() error {
	var errs []error
	for _, f := range h {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// release closes a file that QEMU alone is to have from now on.
func (h handed) release(name string) error {
	f := h[name]
	delete(h, name)
	return f.Close()
}

// add opens a file that is handed over.
func (h handed) add(name string, open func() (*os.File, error)) error {
	f, err := open()
	if err == nil {
		h[name] = f
	}
	return err
}

// copy hands over a file that stays open here.
func (h handed) copy(name string, f *os.File) error {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	h[name] = os.NewFile(uintptr(fd), f.Name())
	return nil
}

// lay makes the links of a machine, and opens what QEMU is handed of them.
func (h handed) lay(r *nodedir.Record) error {
	for _, nic := range r.NICs {
		queues, err := ends.OpenTap(nic, r.KindOf(nic), argv.Queues(&r.Node))
		if err != nil {
			return err
		}
		h.link(nic, queues)
	}
	return nil
}

// link hands over the ends of a link, one for each queue.
func (h handed) link(nic spec.NIC, queues []*os.File) {
	for i, f := range queues {
		h[argv.Tap(nic, i)] = f
	}
}

// inherit hands over the links of a node as the QEMU has them that runs its machine.
func (h handed) inherit(qemu int, r *nodedir.Record) error {
	rest, err := tapsOf(qemu)
	if err != nil {
		return err
	}
	defer func() { rest.close() }()
	for _, nic := range r.NICs {
		var its taps
		if its, rest = rest.split(nic.HostEnd); len(its) == 0 {
			return fmt.Errorf("it has not got the link %s", nic.HostEnd)
		}
		h.link(nic, its)
	}
	return nil
}
