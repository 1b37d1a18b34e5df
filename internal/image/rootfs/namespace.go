package rootfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// namespace returns a user namespace of the ids, made as their own root. What the kernel counts by
// user for a namespace, such as instances and watches of inotify(7), namespaces in it, pending
// signals and locked memory, it counts there and then once more for whoever made it
// (user_namespaces(7)). Were that root of the host, each node could take from all others, and from
// the host.
func (i IDs) namespace() (space *os.File, err error) {
	err = host.Apart(func() (err error) {
		space, err = i.makeNamespace()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("new user namespace: %w", err)
	}
	return space, nil
}

// makeNamespace works on a thread of its own, of which it changes the user. The thread keeps its
// capabilities, and is root again in the end.
func (i IDs) makeNamespace() (*os.File, error) {
	if err := actAs(i.First); err != nil {
		return nil, err
	}
	space, err := i.nested()
	return space, errors.Join(err, actAs(0))
}

// actAs changes the effective user of this thread, and no other, and keeps all that root may do.
func actAs(user int) error {
	const same = ^uintptr(0)
	if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(user), same); err != 0 {
		return os.NewSyscallError("setresuid", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData // of this thread
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for n := range caps {
		caps[n].Effective = caps[n].Permitted
	}
	return os.NewSyscallError("capset", unix.Capset(&header, &caps[0]))
}

// showNamespace lets what is spawned find a user namespace of the overlay's ids at a file.
func (o *Overlay) showNamespace() error {
	space, err := o.IDs.namespace()
	if err != nil {
		return err
	}
	defer space.Close()
	at, err := os.OpenFile(o.Namespace, os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", space.Fd()), o.Namespace, "", unix.MS_BIND, ""); err != nil {
		return &os.PathError{Op: "bind a user namespace to", Path: o.Namespace, Err: err}
	}
	return nil
}
