package backup

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bookkeeping are overlayfs's notes about where a file came from: they hold numbers of this disk and mean nothing on another. Those
// that hide what is below are content.
var bookkeeping = map[string]bool{
	"trusted.overlay.origin": true, "trusted.overlay.impure": true, "trusted.overlay.nlink": true, "trusted.overlay.uuid": true,
	"trusted.overlay.upper": true,
}

// itself names an entry of an open directory to calls that take a path only. No link is followed to come there.
func itself(dir int, name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir, name) }

// attributes reads the extended attributes of an entry of an open directory.
func attributes(dir int, name string) (map[string][]byte, error) {
	at := itself(dir, name)
	list, err := grown(func(b []byte) (int, error) { return unix.Llistxattr(at, b) })
	if errors.Is(err, unix.ENOTSUP) || len(list) == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "listxattr", Path: name, Err: err}
	}
	var all map[string][]byte
	for _, attr := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if bookkeeping[attr] {
			continue
		}
		value, err := grown(func(b []byte) (int, error) { return unix.Lgetxattr(at, attr, b) })
		if errors.Is(err, unix.ENODATA) {
			continue // it has just been removed
		}
		if err != nil {
			return nil, &os.PathError{Op: "getxattr " + attr, Path: name, Err: err}
		}
		if all == nil {
			all = map[string][]byte{}
		}
		all[attr] = value
	}
	return all, nil
}

// grown calls with a buffer that is large enough.
func grown(call func([]byte) (int, error)) ([]byte, error) {
	for _, size := range []int{512, 64 << 10} { // XATTR_SIZE_MAX and XATTR_LIST_MAX
		b := make([]byte, size)
		n, err := call(b)
		if err == nil {
			return b[:n], nil
		}
		if !errors.Is(err, unix.ERANGE) {
			return nil, err
		}
	}
	return nil, unix.ERANGE
}
