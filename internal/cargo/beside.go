package cargo

import (
	"crypto/rand"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/tree"
)

// A beside is a directory of this host in which a copy is made before it comes into its place. It is locked for as long as that takes, so that one
// without a lock was left by a program that was killed.
type beside struct {
	dir  string
	lock *os.File
}

const besidePrefix = ".orrery-"

// newBeside makes one in a directory, and removes those there that were left.
func newBeside(into string) (*beside, error) {
	sweepBeside(into)
	dir := path.Join(into, besidePrefix+rand.Text()[:12])
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockBeside(dir)
	if err != nil {
		return nil, err
	}
	return &beside{dir, lock}, nil
}

// cargo is where the copy is made.
func (b *beside) cargo() string { return path.Join(b.dir, "cargo") }

// build makes a tree in a directory that is not there yet.
func build(in string, fill func(*tree.Builder) error) error {
	b, err := tree.Build(in, func(string) {})
	if err != nil {
		return err
	}
	err = b.Add(&tree.Made{Path: ".", Mode: unix.S_IFDIR | 0o700, Uid: os.Geteuid(), Gid: os.Getegid()}, nil)
	if err == nil {
		err = fill(b)
	}
	if err != nil {
		b.Abandon()
		return err
	}
	return b.Close()
}

// remove removes it. After a success it is empty, and after a failure that is what is to be told.
func (b *beside) remove() {
	_ = tree.RemoveAll(b.dir)
	b.lock.Close()
}

// sweepBeside removes what was left, if it is the caller's and old enough that nobody is just about to lock it.
func sweepBeside(into string) {
	entries, _ := os.ReadDir(into)
	for _, e := range entries {
		if ours, _ := filepath.Match(besidePrefix+"????????????", e.Name()); !ours {
			continue
		}
		dir := path.Join(into, e.Name())
		lock, err := lockBeside(dir)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(int(lock.Fd()), &st) == nil && int(st.Uid) == os.Geteuid() && time.Since(time.Unix(st.Mtim.Unix())) > time.Minute {
			_ = tree.RemoveAll(dir)
		}
		lock.Close()
	}
}

// lockBeside locks a directory, unless somebody else has locked it.
func lockBeside(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := host.Flock(f, host.Alone); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
