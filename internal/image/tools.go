package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// programsDir is the directory with the programs of this host's packages.
const programsDir = "/usr/bin"

// toolDirs are the directories, without the first slash, with the programs of this host's packages,
// libraries and the files these read. Programs do not need others, such as /usr/local and /opt.
var toolDirs = []string{
	"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr/bin", "usr/sbin", "usr/lib", "usr/lib32", "usr/lib64",
	"usr/libx32",
	"usr/libexec", "usr/share", "etc/alternatives",
}

// prepareRoot makes an empty directory the root of the container in which a base image is built, with
// some files in /etc. It returns the directories of this host, without the first slash, that must be
// mounted there.
//
// The root contains programs of this host, because a base image cannot be built by its own
// programs. The directories of this host in which packages install programs are mounted read-only.
// Their owners are unknown in the container. So its processes can only read what every user of the
// host can, and set-user-ID programs have no effect. The container has no other files of the host.
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
	for _, d := range toolDirs {
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
