package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Stack is additional data for a machine that stores its changes on its own disk. It is in a
// file, because the kernel's command line has no room for it.
type Stack struct {
	// identifies this start of the machine, which may boot several times after one start
	Start string `json:"start"`
	// paths at which the host has written since the machine last ran, so that the disk's versions
	// are outdated
	Fresh []string `json:"fresh,omitempty"`
	Binds []string `json:"binds,omitempty"` // directories that are shared with the host, outer ones first
}

// StackFile is the path of the Stack, in the directory that the host shares.
const StackFile = "etc/orrery/.disk.json"

// mountStack mounts the machine's disk as an overlay above the root that the host shares. It then mounts
// the directories that stay the host's.
func mountStack(serial string) error {
	device, err := diskBySerial(serial)
	if err != nil {
		return err
	}
	// The overlay hides the file system from fstrim(8). So the file system itself reports freed
	// blocks to the host (discard).
	if err := unix.Mount(device, "/"+ownDisk, "ext4", unix.MS_NOATIME, "discard"); err != nil {
		return fmt.Errorf("the disk %s cannot be mounted: %w", serial, err)
	}
	if err := growFS(device); err != nil {
		logf("the file system on disk %s cannot be enlarged: %v", serial, err)
	}
	if err := unix.Mount("/"+newRoot, "/"+lowerRoot, "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("the root cannot be moved: %w", err)
	}
	var s Stack
	text, err := os.ReadFile("/" + lowerRoot + "/" + StackFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%s: %w", StackFile, err)
	}
	upper, work := "/"+ownDisk+"/upper", "/"+ownDisk+"/work"
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := s.refresh("/" + ownDisk); err != nil {
		return err
	}
	if err := unix.Mount("overlay", "/"+newRoot, "overlay", 0,
		"lowerdir=/"+lowerRoot+",upperdir="+upper+",workdir="+work); err != nil {
		return fmt.Errorf("the root overlay cannot be mounted: %w", err)
	}
	for _, path := range s.Binds {
		if err := bind(path); err != nil {
			return fmt.Errorf("%s cannot be mounted: %w", path, err)
		}
	}
	return nil
}

// diskBySerial returns the device of a disk by its serial number.
func diskBySerial(serial string) (string, error) {
	files, err := filepath.Glob("/sys/block/*/serial")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == serial {
			return "/dev/" + filepath.Base(filepath.Dir(file)), nil
		}
	}
	return "", fmt.Errorf("the machine has no disk %s, or the image's kernel has no driver for it", serial)
}

// growFS grows the file system to the size of its disk, which may have become larger.
func growFS(device string) error {
	const resize, block = 0x40086610, 4096 // EXT4_IOC_RESIZE_FS (ext4.h of Linux), and its unit
	disk, err := os.Open(device)
	if err != nil {
		return err
	}
	defer disk.Close()
	size, err := disk.Seek(0, 2)
	if err != nil {
		return err
	}
	root, err := os.Open("/" + ownDisk)
	if err != nil {
		return err
	}
	defer root.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(root.Fd()), &st); err != nil {
		return err
	}
	blocks := uint64(size / block)
	if st.Bsize != block || st.Blocks >= blocks-blocks/16 { // the file system's size excludes its own metadata
		return nil
	}
	if _, _, failed := unix.Syscall(unix.SYS_IOCTL, root.Fd(), resize, uintptr(unsafe.Pointer(&blocks))); failed != 0 {
		return failed
	}
	return nil
}

// refresh removes from the disk what the host has rewritten in the root below. It does so once
// for each start, which it records on the disk. If the machine reboots after that, its own changes
// are newer.
func (s *Stack) refresh(disk string) error {
	last := filepath.Join(disk, "start")
	if text, err := os.ReadFile(last); err == nil && s.Start != "" && string(text) == s.Start {
		return nil
	}
	for _, path := range s.Fresh {
		if err := uncover(filepath.Join(disk, "upper"), path); err != nil {
			return fmt.Errorf("%s cannot be removed from the disk: %w", path, err)
		}
	}
	return writeDurably(last, s.Start)
}

// writeDurably writes a file and syncs it, so that it survives a power cut.
func writeDurably(path, text string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// uncover removes the machine's version of a path from the disk, so that the root below is visible
// there. It also removes a file or a whiteout on the way, and the mark of a directory that the
// machine has recreated.
func uncover(upper, path string) error {
	at := upper
	parts := strings.Split(filepath.Clean("/" + path)[1:], "/")
	for i, part := range parts {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if i == len(parts)-1 || !info.IsDir() {
			return os.RemoveAll(at)
		}
		if err := unix.Removexattr(at, "trusted.overlay.opaque"); err != nil && !errors.Is(err, unix.ENODATA) &&
			!errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	return nil
}

// bind mounts a directory of the host in the machine's root.
func bind(path string) error {
	at := filepath.Join("/"+newRoot, filepath.Clean("/"+path))
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	return unix.Mount(filepath.Join("/"+lowerRoot, filepath.Clean("/"+path)), at, "", unix.MS_BIND|unix.MS_REC, "")
}
