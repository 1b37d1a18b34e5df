// Package seccomp denies system calls to processes in nodes and builds (seccomp(2)).
//
// LXC has a filter of its own, and this one contains all its rules. LXC does not install its filter
// where there is one already, and its language cannot express these rules:
//
//   - sockets of the family AF_VSOCK, which no namespace separates: nodes could use them to connect across
//     networks, sites and twins;
//   - io_uring, by which a program creates sockets, and much else, past any filter;
//   - socketcall of i386, which hides the family of a socket behind a pointer.
//
// A thread installs the filter on itself, and all its children inherit it. It is installed before
// LXC starts, so every process in a node has it.
package seccomp

import "golang.org/x/sys/unix"

// A Policy determines which otherwise denied calls are allowed.
type Policy struct {
	IOUring    bool // io_uring_setup(2)
	Socketcall bool // socketcall(2) of 32-bit programs: those of Debian's i386 use it for all sockets
}

// Install denies the calls to the calling thread and its later children. The thread must be root's,
// and must end with its work, because a filter cannot be removed.
func (p Policy) Install() error { return install(p.compile(abis)) }

// An abi is one of the kernel's interfaces for programs, with its own numbers of the calls.
type abi struct {
	arch  uint32 // AUDIT_ARCH of linux/audit.h
	calls calls
}

// calls are the numbers of the calls that may be denied, or 0 if the abi does not have the call. In
// these abis, none of these calls has the number 0.
type calls struct {
	kexecLoad, kexecFileLoad, initModule, finitModule, deleteModule, openByHandleAt uint32
	umount2, socket, socketpair, ioUringSetup, socketcall                           uint32
}

// A refusal denies a call with an error, if an argument has a certain value.
type refusal struct {
	call  uint32
	argOp uint16 // BPF_JEQ or BPF_JSET with arg and value, or 0 to deny the call with any arguments
	arg   uint32
	value uint32
	errno unix.Errno
}

// refusals returns the denied calls of an abi. Each call appears once.
func (p Policy) refusals(c calls) []refusal {
	all := []refusal{
		{call: c.kexecLoad, errno: unix.EPERM},
		{call: c.kexecFileLoad, errno: unix.EPERM},
		{call: c.initModule, errno: unix.EPERM},
		{call: c.finitModule, errno: unix.EPERM},
		{call: c.deleteModule, errno: unix.EPERM},
		{call: c.openByHandleAt, errno: unix.EPERM},
		{call: c.umount2, argOp: unix.BPF_JSET, arg: 1, value: unix.MNT_FORCE, errno: unix.EACCES},
		{call: c.socket, argOp: unix.BPF_JEQ, arg: 0, value: unix.AF_VSOCK, errno: unix.EAFNOSUPPORT},
		{call: c.socketpair, argOp: unix.BPF_JEQ, arg: 0, value: unix.AF_VSOCK, errno: unix.EAFNOSUPPORT},
	}
	if !p.IOUring {
		all = append(all, refusal{call: c.ioUringSetup, errno: unix.EPERM})
	}
	if !p.Socketcall {
		all = append(all, refusal{call: c.socketcall, errno: unix.ENOSYS})
	}
	return all
}

// Instructions of a filter. Its input is struct seccomp_data of linux/seccomp.h.
const (
	load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jump = unix.BPF_JMP | unix.BPF_K
	ret  = unix.BPF_RET | unix.BPF_K

	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16 // eight bytes each; of the arguments checked here, the kernel uses the lower half

	x32 = 0x40000000 // the bit that programs of the x32 abi set in each number
)

// compile returns the filter. A program of an abi that is not listed cannot make any system call,
// because its numbers would mean other calls.
func (p Policy) compile(abis []abi) []unix.SockFilter {
	filter := []unix.SockFilter{{Code: load, K: offsetArch}}
	for _, a := range abis {
		section := p.section(a.calls)
		// A conditional jump reaches 255 instructions, an unconditional one any distance.
		filter = append(filter,
			unix.SockFilter{Code: jump | unix.BPF_JEQ, Jt: 1, K: a.arch},
			unix.SockFilter{Code: jump | unix.BPF_JA, K: uint32(len(section))})
		filter = append(filter, section...)
	}
	return append(filter, refuse(unix.ENOSYS))
}

// section returns the instructions for one abi. They end the filter.
func (p Policy) section(c calls) []unix.SockFilter {
	all := []unix.SockFilter{{Code: load, K: offsetCall}}
	// Nodes do not need x32. Its numbers are those of amd64 with a bit set, or higher ones.
	all = append(all, unix.SockFilter{Code: jump | unix.BPF_JSET, Jf: 1, K: x32}, refuse(unix.ENOSYS))
	for _, r := range p.refusals(c) {
		if r.call == 0 {
			continue
		}
		answer := []unix.SockFilter{refuse(r.errno)}
		if r.argOp != 0 {
			answer = []unix.SockFilter{
				{Code: load, K: offsetArgs + 8*r.arg},
				{Code: jump | r.argOp, Jf: 1, K: r.value},
				refuse(r.errno),
				{Code: ret, K: unix.SECCOMP_RET_ALLOW},
			}
		}
		all = append(all, unix.SockFilter{Code: jump | unix.BPF_JEQ, Jf: uint8(len(answer)), K: r.call})
		all = append(all, answer...)
	}
	return append(all, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
}

func refuse(err unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(err)}
}
