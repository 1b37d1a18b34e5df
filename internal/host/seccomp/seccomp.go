// Package seccomp denies system calls to processes in nodes and builds (seccomp(2)). LXC has a list
// of its own, which this one contains. LXC leaves it out where there is a filter already, and its
// language cannot express the rest:
//
//   - sockets of the family AF_VSOCK, which no namespace divides: nodes would meet there across
//     networks, sites and twins;
//   - io_uring, by which a program makes sockets, and much else, past any filter;
//   - socketcall of i386, which hides the family of a socket behind a pointer.
//
// A thread installs the filter on itself, and everything that it starts inherits it, so it begins
// before LXC does and nothing in a node can have been started without it.
package seccomp

import "golang.org/x/sys/unix"

// A Policy says which calls are let through all the same.
type Policy struct {
	IOUring    bool // io_uring_setup(2)
	Socketcall bool // socketcall(2) of 32-bit programs, which those of Debian's i386 use for all sockets
}

// Install refuses the calls from now on to the calling thread and all that it starts. The thread
// must be root's, and end with its work: a filter cannot be taken off.
func (p Policy) Install() error { return install(p.compile(abis)) }

// An abi is one of the ways in which programs call this kernel, with its own numbers of the calls.
type abi struct {
	arch  uint32 // AUDIT_ARCH of linux/audit.h
	calls calls
}

// calls are the numbers of the calls of which any is refused, or 0 for one that the abi does not
// have. No abi here numbers any of these calls 0.
type calls struct {
	kexecLoad, kexecFileLoad, initModule, finitModule, deleteModule, openByHandleAt uint32
	umount2, socket, socketpair, ioUringSetup, socketcall                           uint32
}

// A refusal answers a call with an error if an argument is one that is refused.
type refusal struct {
	call  uint32
	argOp uint16 // BPF_JEQ or BPF_JSET with arg and value, or 0 to refuse the call whatever its arguments are
	arg   uint32
	value uint32
	errno unix.Errno
}

// refusals returns what is refused in an abi. Each call is in it once.
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

// Instructions of a filter, which works on struct seccomp_data of linux/seccomp.h.
const (
	load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jump = unix.BPF_JMP | unix.BPF_K
	ret  = unix.BPF_RET | unix.BPF_K

	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16 // eight bytes each; of those that matter here, the kernel takes the lower half

	x32 = 0x40000000 // the bit that programs of the abi x32 set in each number
)

// compile returns the filter. A program of an abi that is not listed cannot call the kernel at all,
// as its numbers would mean other calls.
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
	// Nodes have no use for x32, whose numbers are those of amd64 with a bit set, or others above.
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
