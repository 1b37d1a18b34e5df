package seccomp

import "golang.org/x/sys/unix"

// abis are the abis of an arm64 kernel: its own, and that of 32-bit ARM (arch/arm/tools/syscall.tbl
// of Linux).
var abis = []abi{
	{unix.AUDIT_ARCH_AARCH64, native},
	{unix.AUDIT_ARCH_ARM, calls{
		kexecLoad: 347, kexecFileLoad: 401, initModule: 128, finitModule: 379, deleteModule: 129, openByHandleAt: 371,
		umount2: 52, socket: 281, socketpair: 288, ioUringSetup: 425, socketcall: 102,
	}},
}
