package image

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// An attribute is an extended attribute of a file.
type attribute struct {
	name  string
	value []byte
}

// attributes gives the extended attributes of a path itself that are content, sorted by name.
func attributes(path string) ([]attribute, error) {
	names, err := attributeNames(path)
	if err != nil {
		return nil, err
	}
	var found []attribute
	for _, name := range names {
		if bookkeeping[name] {
			continue
		}
		value := make([]byte, 1<<10)
		n, err := unix.Lgetxattr(path, name, value)
		if errors.Is(err, unix.ERANGE) {
			value = make([]byte, 64<<10) // XATTR_SIZE_MAX
			n, err = unix.Lgetxattr(path, name, value)
		}
		if err != nil {
			return nil, &os.PathError{Op: "lgetxattr " + name, Path: path, Err: err}
		}
		found = append(found, attribute{name, value[:n]})
	}
	return found, nil
}

// bookkeeping are overlayfs's notes about where a file came from: they hold inode numbers of this disk and say nothing once
// the tree is a layer. (Those that hide what is below, trusted.overlay.opaque and whiteouts, are content.)
var bookkeeping = map[string]bool{
	"trusted.overlay.origin": true, "trusted.overlay.impure": true, "trusted.overlay.nlink": true, "trusted.overlay.uuid": true,
	"trusted.overlay.upper": true,
}

func attributeNames(path string) ([]string, error) {
	buffer := make([]byte, 512)
	n, err := unix.Llistxattr(path, buffer)
	if errors.Is(err, unix.ERANGE) {
		buffer = make([]byte, 64<<10) // XATTR_LIST_MAX
		n, err = unix.Llistxattr(path, buffer)
	}
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "llistxattr", Path: path, Err: err}
	}
	names := strings.FieldsFunc(string(buffer[:n]), func(r rune) bool { return r == 0 })
	slices.Sort(names)
	return names, nil
}
