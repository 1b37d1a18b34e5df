package image

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"orrery/internal/site/distro"
	"orrery/internal/tree"
)

// volatileDirs are directories whose content is temporary or depends on the build.
var volatileDirs = []string{"dev", "tmp", "run", "var/tmp", "var/cache/ldconfig", "root/.cache"}

// installLeftovers are files that a system creates while it is being installed.
var installLeftovers = []string{
	"var/log/*.log", "var/log/btmp", "var/log/wtmp", "var/log/lastlog", "var/log/faillog", "var/log/journal/*",
	"etc/*-", "var/lib/systemd/random-seed", "var/lib/systemd/catalog/database.*", "root/.bash_history", "root/.wget-hsts",
}

// removeVolatile removes what does not belong to the content of a tree. It keeps whiteouts and opaque
// directories: in a role layer they hide what the base has.
func removeVolatile(d *distro.Distribution, dir string) error {
	in, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := emptyDirs(in, slices.Concat(volatileDirs, d.Packages.Volatile)...); err != nil {
		return err
	}
	for _, pattern := range slices.Concat(installLeftovers, d.Packages.Leavings) {
		names, err := in.Names(path.Dir(pattern), maxNames)
		if err != nil && !isMissing(err) {
			return err
		}
		for _, name := range names {
			at := path.Join(path.Dir(pattern), name)
			if fits, _ := path.Match(pattern, at); !fits {
				continue
			}
			st, err := in.Lstat(at)
			if err == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 {
				continue
			}
			if err := in.RemoveAll(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxNames is the maximum number of names in a directory that is tidied.
const maxNames = 1 << 20

// emptyDirs removes the content of directories of a tree. It keeps the directories themselves, because
// their owners and modes matter.
func emptyDirs(in *tree.Root, names ...string) error {
	for _, name := range names {
		inside, err := in.Names(name, maxNames)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, entry := range inside {
			if err := in.RemoveAll(path.Join(name, entry)); err != nil {
				return err
			}
		}
	}
	return nil
}
