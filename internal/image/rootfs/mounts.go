package rootfs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An MountSource is a directory as mount tables name it: the device of its file system, and the path on
// it. It is the same in all mount namespaces, whatever the path of the directory there.
type MountSource struct{ Device, Path string }

// Contains reports whether other is the directory o or below it.
func (o MountSource) Contains(other MountSource) bool {
	return o.Device == other.Device && (other.Path == o.Path ||
		strings.HasPrefix(other.Path, strings.TrimSuffix(o.Path, "/")+"/"))
}

// A MountInfo is a line of a mount table (proc_pid_mountinfo(5)).
type MountInfo struct {
	ID, Parent uint64 // unique on the host, across all namespaces
	Source     MountSource
	At         string
	ReadOnly   bool
	Kind       string // type of the file system
}

// ReadMounts parses a mount table.
func ReadMounts(table io.Reader) ([]MountInfo, error) {
	text, err := io.ReadAll(table)
	if err != nil {
		return nil, err
	}
	var all []MountInfo
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			return nil, fmt.Errorf("invalid line in a mount table: %q", line)
		}
		id, err1 := strconv.ParseUint(fields[0], 10, 64)
		parent, err2 := strconv.ParseUint(fields[1], 10, 64)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("invalid line in a mount table: %q", line)
		}
		kind := ""
		// optional fields precede the dash
		if dash := slices.Index(fields[6:], "-"); dash >= 0 && len(fields) > 6+dash+1 {
			kind = fields[6+dash+1]
		}
		all = append(all, MountInfo{
			ID: id, Parent: parent, Source: MountSource{fields[2], unescape(fields[3])}, At: unescape(fields[4]),
			ReadOnly: fields[5] == "ro" || strings.HasPrefix(fields[5], "ro,"), Kind: kind,
		})
	}
	return all, nil
}

// MountsOf returns the mounts that a process sees. Process is a pid, "self" or "thread-self".
func MountsOf(process string) ([]MountInfo, error) {
	file, err := os.Open(filepath.Join("/proc", process, "mountinfo"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadMounts(file)
}

// unescape replaces the octal escapes of space, tab, newline, backslash and # in mount tables.
func unescape(path string) string {
	if !strings.Contains(path, `\`) {
		return path
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#").Replace(path)
}

// Escape escapes a path for mount tables and fstab(5).
func Escape(path string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(path)
}

// MountID returns the id of the mount that contains a file.
func MountID(path string) (uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID,
		&st); err != nil {
		return 0, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return st.Mnt_id, nil
}

// MountSourcesOf returns the origins of directories of this host.
func MountSourcesOf(dirs ...string) ([]MountSource, error) {
	table, err := MountsOf("self")
	if err != nil {
		return nil, err
	}
	var all []MountSource
	for _, dir := range dirs {
		o, err := mountSourceOf(dir, table)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

func mountSourceOf(dir string, table []MountInfo) (MountSource, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return MountSource{}, err
	}
	id, err := MountID(real)
	if err != nil {
		return MountSource{}, err
	}
	for _, m := range table {
		if m.ID != id {
			continue
		}
		inside, err := filepath.Rel(m.At, real)
		return MountSource{m.Source.Device, filepath.Join(m.Source.Path, inside)}, err
	}
	return MountSource{}, fmt.Errorf("%s is not on any mount of this host", dir)
}
