package seccomp

import "golang.org/x/sys/unix"

// native are the call numbers of the architecture for which this program was built.
var native = calls{
	kexecLoad: unix.SYS_KEXEC_LOAD, kexecFileLoad: unix.SYS_KEXEC_FILE_LOAD, initModule: unix.SYS_INIT_MODULE,
	finitModule: unix.SYS_FINIT_MODULE, deleteModule: unix.SYS_DELETE_MODULE, openByHandleAt: unix.SYS_OPEN_BY_HANDLE_AT,
	umount2: unix.SYS_UMOUNT2, socket: unix.SYS_SOCKET, socketpair: unix.SYS_SOCKETPAIR,
	ioUringSetup: unix.SYS_IO_URING_SETUP,
}
