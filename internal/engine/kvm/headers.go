package kvm

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// headers are the sizes in bytes of the header (struct virtio_net_hdr of the kernel) before each
// packet of a tap, by the name of the tap. A tap has one size for all processes that have it open.
// A QEMU that opens a tap sets the size for a guest that has not started yet (net_tap_fd_init in
// QEMU's net/tap.c). From then on, the machine that still runs on the tap sends and receives
// packets with the wrong offset.
type headers map[string]int

// headersOf returns the header sizes of the links that a QEMU has open.
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

// restore sets the header sizes that the links of a QEMU had before another QEMU began to take
// over. A QEMU that has ended needs none.
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

// set sets the header sizes of taps.
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

// keepRestoring restores the header sizes of a QEMU's taps every 2 ms, because the QEMU that will take over
// changes them. The guest sees only a few lost packets. The caller ends it by calling end.
func (h headers) keepRestoring(qemu int) (end func(), err error) {
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
			_ = h.set(taps) // ignore the error: if setting keeps failing, restore returns it
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
