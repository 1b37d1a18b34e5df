package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// useTap tries what would leave a tap on the host forever, give it to other users, or rename the
// host's end. The program receives the open tap, like QEMU, and needs no privilege and no other
// file. It prints what the kernel allowed.
func useTap(args []string) error {
	if len(args) != 1 {
		return errors.New("tap DESCRIPTOR")
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	// What QEMU does itself must work, or everything else would fail for other reasons.
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, 12); err != nil {
		return err
	}
	var address [40]byte // struct ifreq
	binary.NativeEndian.PutUint16(address[16:], unix.ARPHRD_ETHER)
	copy(address[18:], []byte{2, 0, 0, 0, 0, 0x24})
	var name [40]byte
	copy(name[:], "stolen0")
	var off int32
	var allowed []string
	for what, call := range map[string]struct {
		request uint
		arg     uintptr
	}{
		"persist": {unix.TUNSETPERSIST, 1},
		"owner":   {unix.TUNSETOWNER, 65534},
		"group":   {unix.TUNSETGROUP, 65534},
		"debug":   {unix.TUNSETDEBUG, 1},
		"carrier": {unix.TUNSETCARRIER, uintptr(unsafe.Pointer(&off))},
		"name":    {unix.SIOCSIFNAME, uintptr(unsafe.Pointer(&name))},
		"attach":  {unix.TUNSETIFF, uintptr(unsafe.Pointer(&name))},
		"address": {unix.SIOCSIFHWADDR, uintptr(unsafe.Pointer(&address))},
	} {
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(call.request), call.arg); e == 0 {
			allowed = append(allowed, what)
		}
	}
	slices.Sort(allowed)
	fmt.Fprintln(os.Stdout, "allowed:", allowed)
	return nil
}
