package rootfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// namespace returns a user namespace of the ids that their own root has created. Some resources are
// counted per user in a namespace, such as instances and watches of inotify(7), nested namespaces,
// pending signals and locked memory. The kernel also charges them to the user that created the
// namespace (user_namespaces(7)). If that were the host's root, each node could exhaust what all
// other nodes and the host share.
func (i IDs) namespace() (space *os.File, err error) {
	err = host.OnLockedThread(func() (err error) {
		space, err = i.makeNamespace()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("new user namespace: %w", err)
	}
	return space, nil
}

// makeNamespace changes the user of the current thread, so the caller must run it on a separate
// thread. The thread keeps its capabilities and is root again when makeNamespace returns.
func (i IDs) makeNamespace() (*os.File, error) {
	if err := actAs(i.First); err != nil {
		return nil, err
	}
	space, err := i.newNestedNamespace()
	return space, errors.Join(err, actAs(0))
}

// actAs changes the effective user of only this thread, and keeps its capabilities.
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

// showNamespace bind-mounts a user namespace of the overlay's ids to the file Namespace, for the
// command that is spawned.
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
