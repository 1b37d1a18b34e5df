package seccomp

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hostsEnd are what ioctl(2) does to the host's end of a tap for whoever has the tap open, with no
// privilege (tun_chr_ioctl of Linux). QEMU calls none of them on a tap that it is handed.
var hostsEnd = []uint32{
	unix.TUNSETPERSIST, unix.TUNSETOWNER, unix.TUNSETGROUP, // the link stays when it is closed, and others may open it
	unix.SIOCSIFHWADDR, unix.SIOCSIFNAME, unix.TUNSETLINK, unix.TUNSETCARRIER,
	unix.TUNSETIFF, unix.TUNSETIFINDEX, // a link of another name or number
	unix.TUNATTACHFILTER, unix.TUNDETACHFILTER, unix.TUNSETTXFILTER, unix.TUNSETFILTEREBPF, unix.TUNSETSTEERINGEBPF,
	unix.TUNSETDEBUG,                    // each packet is in the host's log
	unix.SIOCGSKNS, unix.TUNGETDEVNETNS, // the host's network namespace
}

// KeepHostsEnd refuses these calls from now on to the calling thread and all that it starts, and
// all calls that are not of this machine's own abi. The thread must be root's, and end with its
// work: a filter cannot be taken off.
func KeepHostsEnd() error { return install(hostsEndFilter()) }

func hostsEndFilter() []unix.SockFilter {
	filter := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: jump | unix.BPF_JEQ, Jt: 1, K: abis[0].arch},
		refuse(unix.ENOSYS),
		{Code: load, K: offsetCall},
		{Code: jump | unix.BPF_JSET, Jf: 1, K: x32},
		refuse(unix.ENOSYS),
		{Code: jump | unix.BPF_JEQ, Jt: 1, K: unix.SYS_IOCTL},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: load, K: offsetArgs + 8}, // the kernel takes the lower half of the request
	}
	for _, request := range hostsEnd {
		filter = append(filter, unix.SockFilter{Code: jump | unix.BPF_JEQ, Jf: 1, K: request}, refuse(unix.EPERM))
	}
	return append(filter, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
}

func install(filter []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, err := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if err != 0 {
		return os.NewSyscallError("seccomp", err)
	}
	return nil
}
