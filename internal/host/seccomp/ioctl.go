package seccomp

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tapIoctls are ioctl(2) requests that change the host's end of a tap. A process that has the tap
// open may make them without privileges (tun_chr_ioctl of Linux). QEMU makes none of them on a tap
// that it inherits.
var tapIoctls = []uint32{
	unix.TUNSETPERSIST, unix.TUNSETOWNER, unix.TUNSETGROUP, // the link outlives the file, and other users may open it
	unix.SIOCSIFHWADDR, unix.SIOCSIFNAME, unix.TUNSETLINK, unix.TUNSETCARRIER,
	unix.TUNSETIFF, unix.TUNSETIFINDEX, // a link of another name or index
	unix.TUNATTACHFILTER, unix.TUNDETACHFILTER, unix.TUNSETTXFILTER, unix.TUNSETFILTEREBPF, unix.TUNSETSTEERINGEBPF,
	unix.TUNSETDEBUG,                    // logs each packet on the host
	unix.SIOCGSKNS, unix.TUNGETDEVNETNS, // the host's network namespace
}

// DenyTapIoctls denies these requests to the calling thread and its later children, and all calls of
// other abis than this machine's own. The thread must be root's, and must end with its work,
// because a filter cannot be removed.
func DenyTapIoctls() error { return install(tapIoctlFilter()) }

func tapIoctlFilter() []unix.SockFilter {
	filter := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: jump | unix.BPF_JEQ, Jt: 1, K: abis[0].arch},
		refuse(unix.ENOSYS),
		{Code: load, K: offsetCall},
		{Code: jump | unix.BPF_JSET, Jf: 1, K: x32},
		refuse(unix.ENOSYS),
		{Code: jump | unix.BPF_JEQ, Jt: 1, K: unix.SYS_IOCTL},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: load, K: offsetArgs + 8}, // the kernel uses the lower half of the request
	}
	for _, request := range tapIoctls {
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
