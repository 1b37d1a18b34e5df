package qemu

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests of /dev/kvm that a trial needs (linux/kvm.h).
const (
	kvmCreateVM     = 0xAE01
	kvmMapSize      = 0xAE04
	kvmCreateVCPU   = 0xAE41
	kvmSetMemory    = 0x4020AE46
	kvmSetTSS       = 0xAE47
	kvmInterrupts   = 0xAE60 // KVM_CREATE_IRQCHIP
	kvmRun          = 0xAE80
	kvmSetRegisters = 0x4090AE82
	kvmGetSpecial   = 0x8138AE83
	kvmSetSpecial   = 0x4138AE84

	kvmExitPort     = 2 // KVM_EXIT_IO
	kvmExitInternal = 17
)

// ProbeKVM runs a few instructions in a virtual machine: first in real mode, like every booting
// guest, then in long mode with paging. On some machines, /dev/kvm opens and creates machines, but
// their processors do not run.
func ProbeKVM() error {
	dev, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	for _, mode := range []struct {
		name string
		set  func(special []byte)
	}{{"real mode", realMode}, {"long mode", longMode}} {
		if err := tryMode(int(dev.Fd()), mode.set); err != nil {
			return fmt.Errorf("%s: %w", mode.name, err)
		}
	}
	return nil
}

const (
	guestBytes = 0x10000
	guestCode  = 0x1000
)

func tryMode(dev int, setMode func(special []byte)) error {
	vm, err := ioctl(dev, kvmCreateVM, 0)
	if err != nil {
		return fmt.Errorf("cannot create a virtual machine: %w", err)
	}
	defer os.NewFile(uintptr(vm), "vm").Close()
	if _, err := ioctl(vm, kvmSetTSS, 0xfffbd000); err != nil { // older Intel processors need it for real mode
		return err
	}
	// Without interrupt controllers in the kernel, the first and the last virtual processor of a
	// host make the kernel patch its code (kvm_has_noapic_vcpu). For that, all processors stop for
	// a moment. The trial must not disturb running machines, so it creates interrupt controllers,
	// as every real machine does.
	if _, err := ioctl(vm, kvmInterrupts, 0); err != nil {
		return fmt.Errorf("cannot create an interrupt controller: %w", err)
	}
	memory, err := unix.Mmap(-1, 0, guestBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	defer unix.Munmap(memory) //nolint:errcheck // nothing can be done
	pageTables(memory)
	// fninit; fldz; cpuid; out %al,$0x80. The kernel cannot emulate fldz. If the processor does not
	// really run guests, a stock guest fails at this point. An example is kvm_pvm, which emulates
	// all guests that are not made for it.
	copy(memory[guestCode:], []byte{0xdb, 0xe3, 0xd9, 0xee, 0x0f, 0xa2, 0xe6, 0x80})
	region := struct {
		slot, flags         uint32
		guest, bytes, where uint64
	}{bytes: guestBytes, where: uint64(uintptr(unsafe.Pointer(&memory[0])))}
	if _, err := ioctl(vm, kvmSetMemory, uintptr(unsafe.Pointer(&region))); err != nil {
		return fmt.Errorf("cannot map memory: %w", err)
	}
	size, err := ioctl(dev, kvmMapSize, 0)
	if err != nil {
		return err
	}
	cpu, err := ioctl(vm, kvmCreateVCPU, 0)
	if err != nil {
		return fmt.Errorf("cannot create a processor: %w", err)
	}
	defer os.NewFile(uintptr(cpu), "vcpu").Close()
	run, err := unix.Mmap(cpu, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(run) //nolint:errcheck // nothing can be done
	special := make([]byte, 0x138)
	if _, err := ioctl(cpu, kvmGetSpecial, uintptr(unsafe.Pointer(&special[0]))); err != nil {
		return err
	}
	setMode(special)
	if _, err := ioctl(cpu, kvmSetSpecial, uintptr(unsafe.Pointer(&special[0]))); err != nil {
		return err
	}
	registers := make([]byte, 0x90)
	binary.LittleEndian.PutUint64(registers[128:], guestCode) // rip
	binary.LittleEndian.PutUint64(registers[136:], 2)         // rflags: bit 1 is always set
	if _, err := ioctl(cpu, kvmSetRegisters, uintptr(unsafe.Pointer(&registers[0]))); err != nil {
		return err
	}
	return runToPort(cpu, run)
}

// runToPort runs a virtual processor until it writes to a port, for at most one second.
func runToPort(cpu int, run []byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var late atomic.Bool
	tid := unix.Gettid()
	alarm := time.AfterFunc(time.Second, func() {
		late.Store(true)
		run[1] = 1                                 // immediate_exit
		unix.Tgkill(os.Getpid(), tid, unix.SIGURG) //nolint:errcheck // the runtime ignores this signal, KVM_RUN returns
	})
	defer alarm.Stop()
	for {
		_, err := ioctl(cpu, kvmRun, 0)
		switch reason := binary.LittleEndian.Uint32(run[8:]); {
		case late.Load():
			return fmt.Errorf("the virtual processor did not finish in time")
		case err == unix.EINTR:
			continue
		case err != nil:
			return fmt.Errorf("the virtual processor does not run: %w", err)
		case reason == kvmExitInternal:
			return fmt.Errorf("the kernel emulates the virtual processor, and cannot continue")
		case reason != kvmExitPort:
			return fmt.Errorf("the virtual processor stopped early, with reason %d (linux/kvm.h, KVM_EXIT)", reason)
		}
		return nil
	}
}

func ioctl(fd int, request, arg uintptr) (int, error) {
	r, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, arg)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// realMode starts the code segment at address 0 (struct kvm_sregs begins with cs).
func realMode(special []byte) {
	binary.LittleEndian.PutUint64(special[0:], 0)
	binary.LittleEndian.PutUint16(special[12:], 0)
}

// longMode sets the registers for 64-bit code with the page tables at 0x2000.
func longMode(special []byte) {
	for i := range 6 { // cs, ds, es, fs, gs, ss
		segment := special[24*i : 24*i+24]
		kind, long := byte(3), byte(0) // data, read and write
		if i == 0 {
			kind, long = 11, 1 // code, read and execute
		}
		binary.LittleEndian.PutUint64(segment, 0)
		binary.LittleEndian.PutUint32(segment[8:], 0xffffffff)
		binary.LittleEndian.PutUint16(segment[12:], uint16(8*(min(i, 1)+1)))
		copy(segment[14:], []byte{kind, 1, 0, 1 - long, 1, long, 1, 0, 0, 0}) // type, present, dpl, db, s, l, g
	}
	control := special[8*24+2*16:]
	binary.LittleEndian.PutUint64(control[0:], 0x80000011) // cr0: PG, ET, PE
	binary.LittleEndian.PutUint64(control[16:], 0x2000)    // cr3
	binary.LittleEndian.PutUint64(control[24:], 0x20)      // cr4: PAE
	binary.LittleEndian.PutUint64(control[40:], 0x500)     // efer: LMA, LME
}

// pageTables maps the first 2 MiB to themselves, by three tables. The last one contains one large
// page.
func pageTables(memory []byte) {
	const present, write, large = 1, 2, 0x80
	binary.LittleEndian.PutUint64(memory[0x2000:], 0x3000|present|write)
	binary.LittleEndian.PutUint64(memory[0x3000:], 0x4000|present|write)
	binary.LittleEndian.PutUint64(memory[0x4000:], present|write|large)
}
