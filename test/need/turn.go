package need

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// held is the environment variable that tells a process which a test starts of its own program that
// its package has its turn.
const held = "ORRERY_TEST_TURN"

// TakeTurn waits until no other process runs the integration tests of this package with the same
// state. Such processes use the same sites, and each would remove those of the other. The turn ends
// when this process ends.
func TakeTurn() error { return turn() }

var turn = sync.OnceValue(func() error {
	_, pkg, err := place()
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(pkg, "/", "-")
	if os.Getenv(held) == name {
		return nil
	}
	if err := os.MkdirAll(State(), 0o711); err != nil {
		return err
	}
	fd, err := unix.Open(filepath.Join(State(), "turn-"+name), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		fmt.Fprintf(os.Stderr, "somebody else runs the integration tests of %s on this machine, and is waited for\n", name)
		for err = unix.EINTR; err == unix.EINTR; {
			err = unix.Flock(fd, unix.LOCK_EX)
		}
	}
	if err != nil {
		return os.NewSyscallError("flock", err)
	}
	return os.Setenv(held, name) // the file stays open
})
