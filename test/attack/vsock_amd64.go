package main

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// int80 makes a system call as i386 programs do (vsock_amd64.s). Pointers must be below 4 GiB.
func int80(number, a, b, c uintptr) uintptr

// vsock tries each way to get a socket of the family AF_VSOCK, and prints the result of each.
func vsock([]string) error {
	for _, way := range []struct {
		name string
		try  func() error
	}{
		{"socket", func() error { return direct(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM) }},
		{"socketpair", func() error {
			var pair [2]int32
			_, _, err := unix.Syscall6(unix.SYS_SOCKETPAIR, unix.AF_VSOCK, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&pair)),
				0, 0)
			return unless(err)
		}},
		{"x32 socket", func() error { return direct(unix.SYS_SOCKET|0x40000000, unix.AF_VSOCK, unix.SOCK_STREAM) }},
		{"i386 socket", func() error { return i386(359, unix.AF_VSOCK, unix.SOCK_STREAM) }},
		{"i386 socketcall", socketcall},
		{"io_uring", func() error {
			var parameters [120]byte
			return direct(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&parameters)))
		}},
		{"i386 io_uring", func() error { return i386(425, 4, 0) }},
		{"socket of IPv4", func() error { return direct(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM) }},
		{"i386 socket of IPv4", func() error { return i386(359, unix.AF_INET, unix.SOCK_STREAM) }},
	} {
		how := "open"
		if err := way.try(); err != nil {
			how = err.Error()
		}
		fmt.Printf("%s: %s\n", way.name, how)
	}
	return nil
}

// socketcall makes a socket by the call that hides its family behind a pointer.
func socketcall() error {
	low, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_32BIT)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(low, unix.AF_VSOCK)
	binary.LittleEndian.PutUint32(low[4:], unix.SOCK_STREAM)
	const sysSocket = 1 // SYS_SOCKET of linux/net.h
	return i386(102, sysSocket, uintptr(unsafe.Pointer(&low[0])))
}

func direct(number, a, b uintptr) error {
	_, _, err := unix.Syscall(number, a, b, 0)
	return unless(err)
}

func i386(number, a, b uintptr) error {
	if result := int32(int80(number, a, b, 0)); result < 0 {
		return unix.Errno(-result)
	}
	return nil
}

func unless(err unix.Errno) error {
	if err == 0 {
		return nil
	}
	return err
}
