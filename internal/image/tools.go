package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// programsDir is the directory with the programs of this host's packages.
const programsDir = "/usr/bin"

// dirs are the directories, without the first slash, with the programs of this host's packages,
// libraries and the files these read. Programs do not need others, such as /usr/local and /opt.
var dirs = []string{
	"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr/bin", "usr/sbin", "usr/lib", "usr/lib32", "usr/lib64",
	"usr/libx32",
	"usr/libexec", "usr/share", "etc/alternatives",
}

// prepareRoot fills an empty directory with such a root and some files in /etc. It returns the directories
// of this host, without the first slash, that must be mounted there.
func prepareRoot(dir string, etc map[string]string) (mounts []string, err error) {
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
		default: // a link, such as /bin to usr/bin
			if err := os.Symlink(link, filepath.Join(dir, d)); err != nil {
				return nil, err
			}
		}
	}
	return mounts, nil
}
