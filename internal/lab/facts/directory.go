package facts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// A Directory is a directory on the measured file system.
type Directory struct {
	Path   string `json:"path"`
	Mount  string `json:"mount,omitempty"`  // where its file system is mounted
	Source string `json:"source,omitempty"` // device, or what takes its place
	// name in Blocks of the whole device below, or "" if there is none or several
	Block   string   `json:"block,omitempty"`
	Type    string   `json:"type,omitempty"`
	Options []string `json:"options,omitempty"` // of the mount and the file system
	Size    int64    `json:"size,omitempty"`    // bytes
	Free    int64    `json:"free,omitempty"`    // bytes, for users other than root
	Direct  bool     `json:"direct"`            // O_DIRECT works there
	Why     string   `json:"why,omitempty"`     // why it does not
}

// directory examines the file system of a directory, which need not exist.
func (h host) directory(dir string) *Directory {
	if dir == "" {
		return nil
	}
	d := &Directory{Path: dir}
	existing := dir
	for !h.has(existing) && filepath.Dir(existing) != existing {
		existing = filepath.Dir(existing)
	}
	if real, err := filepath.EvalSymlinks(existing); err == nil && h.live {
		existing = real
	}
	if m := h.mountOf(existing); m != nil {
		d.Mount, d.Source, d.Type, d.Options = m.MountPoint, m.Source, m.FSType, options(m)
		d.Block = h.blockOf(m.MajorMinorVer)
	}
	if !h.live {
		return d
	}
	var fs unix.Statfs_t
	if unix.Statfs(existing, &fs) == nil {
		d.Size, d.Free = int64(fs.Blocks)*fs.Bsize, int64(fs.Bavail)*fs.Bsize
	}
	if err := TryDirect(existing); err != nil {
		d.Why = err.Error()
	} else {
		d.Direct = true
	}
	return d
}

// mountOf returns the mount of a path: the longest matching one, and of several the last.
func (h host) mountOf(path string) *procfs.MountInfo {
	mounts, _ := h.proc.GetMounts()
	var best *procfs.MountInfo
	for _, m := range mounts {
		if isBelow(path, m.MountPoint) && (best == nil || len(m.MountPoint) >= len(best.MountPoint)) {
			best = m
		}
	}
	return best
}

func isBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func options(m *procfs.MountInfo) []string {
	var all []string
	for _, of := range []map[string]string{m.Options, m.SuperOptions} {
		for name, value := range of {
			if value != "" {
				name += "=" + value
			}
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// blockOf returns the whole device for a device number, such as sda for that of sda1.
func (h host) blockOf(number string) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(h.root, "sys/dev/block", number))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		dir = filepath.Dir(dir)
	}
	return filepath.Base(dir)
}

// TryDirect writes a page with O_DIRECT (open(2)) to an unnamed file in a directory, and returns
// the error if that fails. On some file systems, opening such a file succeeds and only writing
// fails.
func TryDirect(dir string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0o600)
	if err == unix.EOPNOTSUPP || err == unix.EISDIR { // no unnamed files there
		fd, err = openNamed(dir)
	}
	if err != nil {
		return fmt.Errorf("open with O_DIRECT: %w", err)
	}
	defer unix.Close(fd)
	const pageBytes = 4096
	room := make([]byte, 2*pageBytes)
	start := pageBytes - int(uintptr(unsafe.Pointer(&room[0]))%pageBytes)
	if _, err := unix.Pwrite(fd, room[start:start+pageBytes], 0); err != nil {
		return fmt.Errorf("write with O_DIRECT: %w", err)
	}
	return nil
}

// openNamed opens a file with O_DIRECT and unlinks it.
func openNamed(dir string) (int, error) {
	path := filepath.Join(dir, fmt.Sprintf(".orrery-direct-%d", os.Getpid()))
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0o600)
	if !os.IsExist(err) {
		_ = unix.Unlink(path) // a file system may create the file before it refuses O_DIRECT
	}
	return fd, err
}
