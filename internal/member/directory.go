package member

import (
	"context"
	"path"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// CheckRootOwned returns an error if users other than root can change anything in a site directory,
// because its content runs as root. It checks the directory, everything in it, and all directories
// above it.
func CheckRootOwned(ctx context.Context, dir string) error {
	for at := path.Clean(dir); ; at = path.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return problem.New(problem.Failed, "%s cannot be examined", at).Because(err)
		}
		// others may create files there, but cannot rename ours
		sticky := at != dir && st.Mode&unix.S_ISVTX != 0 && st.Uid == 0
		if st.Mode&unix.S_IFMT != unix.S_IFDIR || !sticky && !onlyRootWrites(&st) {
			return checkExposed(at, &st)
		}
		if at == "/" {
			break
		}
	}
	top, err := tree.Open(dir)
	if err != nil {
		return problem.New(problem.Failed, "the site directory cannot be read").At(dir).Because(err)
	}
	defer top.Close() //nolint:errcheck // it was only read
	return top.Walk(ctx, tree.DefaultBounds, func(e *tree.Entry) error {
		if !onlyRootWrites(&e.Stat) {
			return checkExposed(path.Join(dir, e.Path), &e.Stat)
		}
		return nil
	})
}

// onlyRootWrites reports whether only root can write to a file. Rights from access control lists appear in
// the group bits.
func onlyRootWrites(st *unix.Stat_t) bool {
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return st.Uid == 0 // the mode of a link has no meaning
	}
	return st.Uid == 0 && st.Mode&0o022 == 0
}

func checkExposed(at string, st *unix.Stat_t) error {
	return refusedError("%s belongs to user %d with mode %04o: users other than root can change the site",
		tree.DisplayPath(at),
		st.Uid, st.Mode&0o7777).
		Try("make root own the site directory and those above it: chown -R root: DIRECTORY; chmod -R go-w DIRECTORY; then run orrery up there")
}
