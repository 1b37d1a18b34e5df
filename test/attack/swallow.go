package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Requests of the kernel to a file system in user space (linux/fuse.h).
const (
	fuseLookup      = 1
	fuseForget      = 2
	fuseGetattr     = 3
	fuseSetattr     = 4
	fuseOpen        = 14
	fuseWrite       = 16
	fuseInit        = 26
	fuseOpendir     = 27
	fuseInterrupt   = 36
	fuseBatchForget = 42

	fuseHeader = 40 // bytes of a request's header
	outNode    = 2  // the file, below the directory 1
)

// swallow serves a file system on a directory with one file called "out". A process that writes to
// this file cannot be killed before this program ends, since the kernel has sent the write here and
// waits for the answer. On most hosts every user may do this (fusermount3).
func swallow(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: DIRECTORY")
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device.Fd())
	if err := unix.Mount("swallow", args[0], "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	request := make([]byte, 1<<20)
	for {
		n, err := unix.Read(int(device.Fd()), request)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		answer := answerTo(request[:n])
		if answer == nil {
			continue
		}
		if _, err := unix.Write(int(device.Fd()), answer); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

// answerTo returns the answer to a request, or nil if it gets none.
func answerTo(request []byte) []byte {
	order := binary.LittleEndian
	node := order.Uint64(request[16:])
	switch order.Uint32(request[4:]) {
	case fuseWrite, fuseForget, fuseBatchForget, fuseInterrupt:
		return nil
	case fuseInit:
		body := make([]byte, 64)
		order.PutUint32(body[0:], 7)
		order.PutUint32(body[4:], 31)
		order.PutUint32(body[20:], 64<<10) // the largest write
		return said(request, 0, body)
	case fuseLookup:
		if string(request[fuseHeader:len(request)-1]) != "out" {
			return said(request, unix.ENOENT, nil)
		}
		body := make([]byte, 40)
		order.PutUint64(body, outNode)
		return said(request, 0, append(body, attributes(outNode)...))
	case fuseGetattr, fuseSetattr:
		return said(request, 0, append(make([]byte, 16), attributes(node)...))
	case fuseOpen, fuseOpendir:
		body := make([]byte, 16)
		order.PutUint32(body[8:], 1) // no cache, so that each write arrives here
		return said(request, 0, body)
	}
	return said(request, unix.ENOSYS, nil)
}

// attributes are those of a file that every user may write to.
func attributes(node uint64) []byte {
	attr := make([]byte, 88)
	order := binary.LittleEndian
	mode := uint32(unix.S_IFDIR | 0o777)
	if node == outNode {
		mode = unix.S_IFREG | 0o666
	}
	order.PutUint64(attr, node)
	order.PutUint64(attr[24:], uint64(time.Now().Unix()))
	order.PutUint32(attr[60:], mode)
	order.PutUint32(attr[64:], 1)
	return attr
}

func said(to []byte, errno unix.Errno, body []byte) []byte {
	answer := make([]byte, 16, 16+len(body))
	order := binary.LittleEndian
	order.PutUint32(answer, uint32(16+len(body)))
	order.PutUint32(answer[4:], uint32(-int32(errno)))
	copy(answer[8:], to[8:16]) // id of the request
	return append(answer, body...)
}
