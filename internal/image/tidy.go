package image

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"orrery/internal/site/distro"
	"orrery/internal/tree"
)

// volatile are the directories whose content is of this moment or of this build.
var volatile = []string{"dev", "tmp", "run", "var/tmp", "var/cache/ldconfig", "root/.cache"}

// leavings are files that a system leaves as it is made.
var leavings = []string{
	"var/log/*.log", "var/log/btmp", "var/log/wtmp", "var/log/lastlog", "var/log/faillog", "var/log/journal/*",
	"etc/*-", "var/lib/systemd/random-seed", "var/lib/systemd/catalog/database.*", "root/.bash_history", "root/.wget-hsts",
}

// tidy removes what is no part of the content of a tree. Whiteouts and opaque directories stay: in
// a role layer they hide what the base has.
func tidy(d *distro.Distribution, dir string) error {
	in, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := empty(in, slices.Concat(volatile, d.Packages.Volatile)...); err != nil {
		return err
	}
	for _, pattern := range slices.Concat(leavings, d.Packages.Leavings) {
		names, err := in.Names(path.Dir(pattern), maxNames)
		if err != nil && !absent(err) {
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

// maxNames is how many names there may be in a directory that is tidied.
const maxNames = 1 << 20

// empty removes what is in directories of a tree, but not the directories, whose owners and modes matter.
func empty(in *tree.Root, names ...string) error {
	for _, name := range names {
		inside, err := in.Names(name, maxNames)
		if absent(err) {
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
