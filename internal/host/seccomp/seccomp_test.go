package seccomp

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// answer runs a filter on a call (struct seccomp_data) and returns the kernel's reaction.
func answer(t *testing.T, filter []unix.SockFilter, arch, call uint32, args ...uint32) uint32 {
	t.Helper()
	var raw []bpf.RawInstruction
	for _, i := range filter {
		raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("an instruction is none")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64) // words in network byte order, which package bpf expects
	binary.BigEndian.PutUint32(data, call)
	binary.BigEndian.PutUint32(data[4:], arch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[16+8*i:], arg)
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}

func errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// amd64 are the call numbers of an amd64 kernel, on any machine that runs this test.
var amd64 = []abi{
	{unix.AUDIT_ARCH_X86_64, calls{
		kexecLoad: 246, kexecFileLoad: 320, initModule: 175, finitModule: 313, deleteModule: 176, openByHandleAt: 304,
		umount2: 166, socket: 41, socketpair: 53, ioUringSetup: 425,
	}},
	{unix.AUDIT_ARCH_I386, calls{
		kexecLoad: 283, initModule: 128, finitModule: 350, deleteModule: 129, openByHandleAt: 342,
		umount2: 52, socket: 359, socketpair: 360, ioUringSetup: 425, socketcall: 102,
	}},
}

// TestFilter checks that the denied calls are denied in each abi, and no others.
func TestFilter(t *testing.T) {
	const allow = unix.SECCOMP_RET_ALLOW
	const own, i386 = unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_I386
	filter := Policy{}.compile(amd64)
	for name, c := range map[string]struct {
		arch, call uint32
		args       []uint32
		want       uint32
	}{
		"read":                     {own, 0, nil, allow},
		"kexec_load":               {own, 246, nil, errno(unix.EPERM)},
		"kexec_file_load":          {own, 320, nil, errno(unix.EPERM)},
		"init_module":              {own, 175, nil, errno(unix.EPERM)},
		"finit_module":             {own, 313, nil, errno(unix.EPERM)},
		"delete_module":            {own, 176, nil, errno(unix.EPERM)},
		"open_by_handle_at":        {own, 304, nil, errno(unix.EPERM)},
		"umount2":                  {own, 166, []uint32{0, unix.MNT_DETACH}, allow},
		"umount2, forced":          {own, 166, []uint32{0, unix.MNT_FORCE | unix.MNT_DETACH}, errno(unix.EACCES)},
		"socket, of IPv4":          {own, 41, []uint32{unix.AF_INET}, allow},
		"socket, of vsock":         {own, 41, []uint32{unix.AF_VSOCK}, errno(unix.EAFNOSUPPORT)},
		"socketpair, of unix":      {own, 53, []uint32{unix.AF_UNIX}, allow},
		"socketpair, of vsock":     {own, 53, []uint32{unix.AF_VSOCK}, errno(unix.EAFNOSUPPORT)},
		"io_uring_setup":           {own, 425, nil, errno(unix.EPERM)},
		"io_uring_enter":           {own, 426, nil, allow}, // has no effect without a ring
		"x32 socket":               {own, 41 | x32, []uint32{unix.AF_INET}, errno(unix.ENOSYS)},
		"i386 exit":                {i386, 1, nil, allow},
		"i386 socket, of IPv4":     {i386, 359, []uint32{unix.AF_INET}, allow},
		"i386 socket, of vsock":    {i386, 359, []uint32{unix.AF_VSOCK}, errno(unix.EAFNOSUPPORT)},
		"i386 socketpair of vsock": {i386, 360, []uint32{unix.AF_VSOCK}, errno(unix.EAFNOSUPPORT)},
		"i386 socketcall":          {i386, 102, []uint32{1}, errno(unix.ENOSYS)},
		"i386 io_uring_setup":      {i386, 425, nil, errno(unix.EPERM)},
		"i386 open_by_handle_at":   {i386, 342, nil, errno(unix.EPERM)},
		"i386 umount2, forced":     {i386, 52, []uint32{0, unix.MNT_FORCE}, errno(unix.EACCES)},
		"i386, 41 is dup":          {i386, 41, []uint32{unix.AF_VSOCK}, allow},
		"of another machine":       {unix.AUDIT_ARCH_AARCH64, 0, nil, errno(unix.ENOSYS)},
	} {
		if got := answer(t, filter, c.arch, c.call, c.args...); got != c.want {
			t.Errorf("%s: %#x instead of %#x", name, got, c.want)
		}
	}
}

// TestPolicy checks that a policy allows exactly its calls.
func TestPolicy(t *testing.T) {
	const allow = unix.SECCOMP_RET_ALLOW
	for _, p := range []Policy{{}, {IOUring: true}, {Socketcall: true}, {IOUring: true, Socketcall: true}} {
		filter := p.compile(amd64)
		ring := answer(t, filter, unix.AUDIT_ARCH_X86_64, 425) == allow
		call := answer(t, filter, unix.AUDIT_ARCH_I386, 102) == allow
		vsock := answer(t, filter, unix.AUDIT_ARCH_X86_64, 41, unix.AF_VSOCK) == allow
		if ring != p.IOUring || call != p.Socketcall || vsock {
			t.Errorf("%+v: io_uring %v, socketcall %v, vsock %v", p, ring, call, vsock)
		}
	}
}

// TestNative checks that the numbers of this machine are in the filter, and that no call is
// missing.
func TestNative(t *testing.T) {
	if native.socketcall != 0 || native.kexecLoad == 0 || native.socket == 0 {
		t.Errorf("%+v", native)
	}
	if len(abis) != 2 || abis[0].calls != native {
		t.Errorf("%d ways into this kernel", len(abis))
	}
	if n := len(Policy{}.compile(abis)); n > unix.BPF_MAXINSNS {
		t.Errorf("%d instructions", n)
	}
}
