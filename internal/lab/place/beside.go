package place

import (
	"context"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
)

// Beside is the host as a place whose commands run in a control group beside those of nodes and as
// deep as they are. So they have the same share of a busy host, and it costs them the same to be
// accounted for.
type Beside struct {
	*Bare
	Group cgroup.Group
	// Alone lets each command be in a network namespace of its own, with nothing but a loopback. What
	// goes through the loopback of the host passes all rules that the host has for packets; a node has
	// its own, without any.
	Alone bool
}

// Run runs a command in the group.
func (b Beside) Run(ctx context.Context, c host.Command) error {
	var space *os.File
	if b.Alone {
		var err error
		if space, err = host.NewNetwork(); err != nil {
			return err
		}
		defer space.Close()
	}
	return b.within(func() error {
		if space != nil {
			if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
				return os.NewSyscallError("setns", err)
			}
		}
		joined := func() {}
		err := host.Exec(ctx, "bare", c.Args, c, func(cmd *exec.Cmd) {
			in, err := b.Group.Inner().Join(cmd)
			if err != nil {
				cmd.Err = err // so it is not started
				return
			}
			joined = in
		})
		joined()
		return err
	})
}
