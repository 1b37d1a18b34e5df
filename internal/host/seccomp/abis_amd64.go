package seccomp

import "golang.org/x/sys/unix"

// abis are the abis of an amd64 kernel (arch/x86/entry/syscalls of Linux): its own, and i386.
var abis = []abi{
	{unix.AUDIT_ARCH_X86_64, native},
	{unix.AUDIT_ARCH_I386, calls{
		kexecLoad: 283, initModule: 128, finitModule: 350, deleteModule: 129, openByHandleAt: 342,
		umount2: 52, socket: 359, socketpair: 360, ioUringSetup: 425, socketcall: 102,
	}},
}
