package kvm

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Headers are how many bytes the header is (struct virtio_net_hdr of the kernel) that each packet
// of a tap begins with, by the name of the tap. A tap has one length, whoever has it open, and a
// QEMU that gets a tap begins with that of a guest that has not started (net_tap_fd_init of QEMU's
// net/tap.c). From then on, the machine that runs with it sends and gets packets that begin in the
// wrong place.
type headers map[string]int

// headersOf returns those of the links that a QEMU has.
func headersOf(qemu int) (headers, error) {
	taps, err := tapsOf(qemu)
	if err != nil {
		return nil, err
	}
	defer taps.close()
	all := headers{}
	for _, tap := range taps {
		if all[tapOf(tap)], err = unix.IoctlGetInt(int(tap.Fd()), unix.TUNGETVNETHDRSZ); err != nil {
			return nil, os.NewSyscallError("TUNGETVNETHDRSZ", err)
		}
	}
	return all, nil
}

// restore restores the header sizes that the links of a QEMU had before another was to take its
// place. One that has ended needs none.
func (h headers) restore(qemu int) error {
	if qemu == 0 {
		return nil
	}
	taps, err := tapsOf(qemu)
	if err != nil {
		return err
	}
	defer taps.close()
	return h.set(taps)
}

// set restores the header sizes of taps.
func (h headers) set(taps taps) (err error) {
	for _, tap := range taps {
		size, known := h[tapOf(tap)]
		if current, unread := unix.IoctlGetInt(int(tap.Fd()), unix.TUNGETVNETHDRSZ); known &&
			(unread != nil || current != size) {
			err = errors.Join(err, os.NewSyscallError("TUNSETVNETHDRSZ",
				unix.IoctlSetPointerInt(int(tap.Fd()), unix.TUNSETVNETHDRSZ, size)))
		}
	}
	return err
}

// keep sets the headers of a QEMU's taps again as soon as the one that is to take its place has
// changed them. To the guest, that is as if a few packets had got lost.
func (h headers) keep(qemu int) (end func(), err error) {
	taps, err := tapsOf(qemu)
	if err != nil {
		return nil, err
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			_ = h.set(taps) // should it fail, it fails for whoever comes after a kill as well, and is told then
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
		taps.close()
	}, nil
}
