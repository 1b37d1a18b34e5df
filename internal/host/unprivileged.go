package host

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// unprivilegedID is the user and the group as which Unprivileged runs programs. No other process
// has it: the ids of nodes begin after it (package rootfs).
const unprivilegedID = 1899999999

// Unprivileged is this host as the place for programs that read untrusted files, such as
// decompressors. A fault in one of them must not give an attacker root. A program there runs as a
// user who owns nothing and cannot become another. It has no network, sees no other process, and
// inherits none of this program's environment. It reads its standard input, and files that every
// user of the host can read. Only Run drops privileges. Put and Dial do not.
type Unprivileged struct{ Local }

var _ Runner = Unprivileged{}

// Run runs a command without privileges.
func (u Unprivileged) Run(ctx context.Context, c Command) error {
	return withoutPrivileges(func() error {
		return Exec(ctx, "this host", c.Args, c, func(cmd *exec.Cmd) {
			dropPrivileges(cmd)
			cmd.Env = append(cmd.Env, c.Env...)
		})
	})
}

// StartUnprivileged starts a program in the way in which Unprivileged runs it.
func StartUnprivileged(cmd *exec.Cmd) error {
	dropPrivileges(cmd)
	return withoutPrivileges(cmd.Start)
}

// withoutPrivileges calls start on a thread that cannot gain privileges by starting a program. Its
// children cannot either.
func withoutPrivileges(start func() error) error {
	return OnLockedThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return os.NewSyscallError("prctl", err)
		}
		return start()
	})
}

func dropPrivileges(cmd *exec.Cmd) {
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + Path, "LANG=C.UTF-8"}
	if os.Geteuid() != 0 {
		return // nothing to drop
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: unprivilegedID, Gid: unprivilegedID}
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWPID
}
