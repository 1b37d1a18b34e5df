package place

import (
	"context"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
)

// GroupedBare is the bare host with a control group for its commands, next to those of nodes and at the
// same depth. So its commands have the same share of a busy host, and the same cost of accounting.
type GroupedBare struct {
	*Bare
	Group cgroup.Group
	// Alone runs each command in a new network namespace that contains only a loopback interface.
	// Packets on the host's own loopback pass all packet filter rules of the host. A node has its
	// own loopback, without rules.
	Alone bool
}

// Run runs a command in the group.
func (b GroupedBare) Run(ctx context.Context, c host.Command) error {
	var space *os.File
	if b.Alone {
		var err error
		if space, err = host.NewNetNS(); err != nil {
			return err
		}
		defer space.Close()
	}
	return b.inNamespace(func() error {
		if space != nil {
			if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
				return os.NewSyscallError("setns", err)
			}
		}
		joined := func() {}
		err := host.Exec(ctx, "bare", c.Args, c, func(cmd *exec.Cmd) {
			in, err := b.Group.Inner().Join(cmd)
			if err != nil {
				cmd.Err = err // prevents the start
				return
			}
			joined = in
		})
		joined()
		return err
	})
}
