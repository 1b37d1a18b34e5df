package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"orrery/internal/tree/rawfile"
)

// A Device is a device of the host, such as /dev/kvm.
type Device struct {
	Block        bool
	Major, Minor uint32
}

// DeviceAt returns the device of a device file.
func DeviceAt(path string) (Device, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Device{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFBLK && kind != unix.S_IFCHR {
		return Device{}, fmt.Errorf("%s is not a device", path)
	}
	return Device{kind == unix.S_IFBLK, unix.Major(st.Rdev), unix.Minor(st.Rdev)}, nil
}

// AllowDevices allows processes in the group to open and create these devices, and no others, from
// now on. Devices that are open already stay open. A host that is a container itself, or whose
// kernel lacks BPF, cannot limit this. The group then has access to all devices of the host.
func (g Group) AllowDevices(devices []Device) error {
	var err error
	if g.at.isV1("devices") {
		err = allowV1(g.file("devices", ""), devices)
	} else if _, v2 := g.at.hierarchiesByVersion(); v2 != "" {
		err = allowV2(filepath.Join(v2, g.name), devices)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// allowV1 writes the device list of version 1 (admin-guide/cgroup-v1/devices of Linux).
func allowV1(group string, devices []Device) error {
	if err := os.WriteFile(filepath.Join(group, "devices.deny"), []byte("a"), 0); err != nil {
		return err
	}
	for _, d := range devices {
		kind := "c"
		if d.Block {
			kind = "b"
		}
		line := fmt.Sprintf("%s %d:%d rwm", kind, d.Major, d.Minor)
		if err := os.WriteFile(filepath.Join(group, "devices.allow"), []byte(line), 0); err != nil {
			return err
		}
	}
	return nil
}

// allowV2 attaches a BPF program to the group, which the kernel runs to check access. The program
// replaces the former one, and is removed with the group.
func allowV2(at string, devices []Device) error {
	group, err := os.Open(at)
	if err != nil {
		return err
	}
	defer group.Close()
	program, err := loadDeviceProgram(deviceProgram(devices))
	if err != nil {
		return err
	}
	defer unix.Close(program) //nolint:errcheck // the group has it
	attach := struct{ target, program, kind, flags uint32 }{uint32(group.Fd()), uint32(program), unix.BPF_CGROUP_DEVICE, 0}
	_, err = bpf(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attach), unsafe.Sizeof(attach))
	return err
}

// An instruction is a BPF instruction (struct bpf_insn of linux/bpf.h).
type instruction struct {
	code      uint8
	registers uint8 // the destination, and 16 times the source
	offset    int16
	value     int32
}

// deviceProgram returns a program that returns 1 for the given devices, and 0 for all others. Its
// input is a struct bpf_cgroup_dev_ctx of three words. The lower half of the first is the type, and
// the others are the major and the minor number.
func deviceProgram(devices []Device) []instruction {
	const (
		loadWord = unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W
		and      = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		set      = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K
		unequal  = unix.BPF_JMP | unix.BPF_JNE | unix.BPF_K
		exit     = unix.BPF_JMP | unix.BPF_EXIT
	)
	program := []instruction{
		{code: loadWord, registers: 2 | 1<<4, offset: 0},
		{code: and, registers: 2, value: 0xffff},
		{code: loadWord, registers: 3 | 1<<4, offset: 4},
		{code: loadWord, registers: 4 | 1<<4, offset: 8},
	}
	for _, d := range devices {
		kind := int32(unix.BPF_DEVCG_DEV_CHAR)
		if d.Block {
			kind = unix.BPF_DEVCG_DEV_BLOCK
		}
		program = append(program,
			instruction{code: unequal, registers: 2, offset: 4, value: kind},
			instruction{code: unequal, registers: 3, offset: 3, value: int32(d.Major)},
			instruction{code: unequal, registers: 4, offset: 2, value: int32(d.Minor)},
			instruction{code: set, value: 1},
			instruction{code: exit})
	}
	return append(program, instruction{code: set}, instruction{code: exit})
}

func loadDeviceProgram(program []instruction) (fd int, err error) {
	license := []byte("GPL\x00")
	load := struct {
		kind, count    uint32
		program        unsafe.Pointer
		license        unsafe.Pointer
		level, logSize uint32
		log            uint64
	}{kind: unix.BPF_PROG_TYPE_CGROUP_DEVICE, count: uint32(len(program)), program: unsafe.Pointer(&program[0]),
		license: unsafe.Pointer(&license[0])}
	return bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&load), unsafe.Sizeof(load))
}

func bpf(command int, attr unsafe.Pointer, size uintptr) (fd int, err error) {
	n, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(attr), size)
	if errno != 0 {
		return 0, os.NewSyscallError("bpf", errno)
	}
	return int(n), nil
}

// AllowsDevices reports whether a group still has these rules, such as "b 8:1 rw". The programs of
// version 2 cannot be read, so there it returns true.
func AllowsDevices(g Group, rules []string) bool {
	if !g.at.isV1("devices") {
		return true
	}
	text, err := rawfile.ReadFile(g.file("devices", "devices.list"))
	if err != nil {
		return false
	}
	held := strings.Split(strings.TrimSpace(string(text)), "\n")
	return !slices.ContainsFunc(rules, func(rule string) bool {
		i := strings.LastIndex(rule, " ")
		return !slices.ContainsFunc(held, func(line string) bool {
			access, ok := strings.CutPrefix(line, rule[:i+1])
			return ok && strings.Trim(rule[i+1:], access) == ""
		})
	})
}
