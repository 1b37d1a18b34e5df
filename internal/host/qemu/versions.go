package qemu

import (
	"context"
	"maps"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// Versions are those of programs, which are taken down in a file: a program is asked for its version only if it is not the one that was asked before. To start QEMU for
// that takes longer than most commands do.
type Versions struct{ File string }

// A known version is that of a program as it was when it was asked.
type known struct {
	Version string `json:"version"`
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Bytes   int64  `json:"bytes"`
	Changed int64  `json:"changed"` // when it was, in ns: nobody can set that
}

// Of gives the version of a program.
func (v Versions) Of(ctx context.Context, program string) (string, error) {
	is, err := identity(program)
	if err != nil {
		return "", err
	}
	all, _ := host.ReadJSON[map[string]known](v.File) // whatever is wrong with it, it is written anew
	if was, ok := all[program]; ok {
		is.Version = was.Version
		if is == was && is.Version != "" {
			return is.Version, nil
		}
	}
	if is.Version, err = Version(ctx, program); err != nil {
		return "", err
	}
	all = maps.Clone(all)
	if all == nil {
		all = map[string]known{}
	}
	all[program] = is
	_ = host.WriteJSON(v.File, 0o600, all) // where it cannot be, programs are asked each time
	return is.Version, nil
}

// Lacks gives the first of all that virtual machines need and this machine does not have, or has too old; nil: it has it.
func (v Versions) Lacks(ctx context.Context) error {
	program, err := System()
	if err != nil {
		return err
	}
	version, err := v.Of(ctx, program)
	if err != nil {
		return err
	}
	if err := TooOld(version); err != nil {
		return err
	}
	return Lacks()
}

func identity(program string) (known, error) {
	var st unix.Stat_t
	if err := unix.Stat(program, &st); err != nil {
		return known{}, &os.PathError{Op: "stat", Path: program, Err: err}
	}
	return known{Device: uint64(st.Dev), Inode: st.Ino, Bytes: st.Size, Changed: st.Ctim.Nano()}, nil //nolint:unconvert // not on every architecture
}
