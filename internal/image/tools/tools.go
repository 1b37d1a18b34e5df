// Package tools makes the root of the container in which a base image is made: it contains programs
// of this host, since a base cannot be made by its own.
//
// The container has the directories in which packages of this host have programs, read-only and
// with their owners, whom it does not know. So it can read there what every user of the host can,
// and no set-user-ID program is one. It has nothing else of the host.
package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Programs is where this host has the programs of its packages.
const Programs = "/usr/bin"

// dirs are the directories, without the first slash, in which packages of this host have programs,
// libraries and what these read. What is in others, such as /usr/local and /opt, is of no use to
// them.
var dirs = []string{
	"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr/bin", "usr/sbin", "usr/lib", "usr/lib32", "usr/lib64",
	"usr/libx32",
	"usr/libexec", "usr/share", "etc/alternatives",
}

// Root fills an empty directory with such a root, with some files in /etc, and returns the
// directories of this host, without the first slash, that have to be mounted there.
func Root(dir string, etc map[string]string) (mounts []string, err error) {
	for _, d := range []string{"dev", "etc", "proc", "root", "tmp", "usr"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	for name, text := range etc {
		if err := os.WriteFile(filepath.Join(dir, "etc", name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	for _, d := range dirs {
		link, err := os.Readlink("/" + d)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil: // a directory
			mounts = append(mounts, d)
		default: // /bin, where it is /usr/bin
			if err := os.Symlink(link, filepath.Join(dir, d)); err != nil {
				return nil, err
			}
		}
	}
	return mounts, nil
}
