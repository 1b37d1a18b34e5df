package nodecopy

import (
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// build creates a tree in a directory that does not exist yet.
func build(in string, fill func(*tree.Builder) error) error {
	b, err := tree.NewBuilder(in, func(string) {})
	if err != nil {
		return err
	}
	err = b.Add(&tree.Header{Path: ".", Mode: unix.S_IFDIR | 0o700, Uid: os.Geteuid(), Gid: os.Getegid()}, nil)
	if err == nil {
		err = fill(b)
	}
	if err != nil {
		b.Abandon()
		return err
	}
	return b.Close()
}
