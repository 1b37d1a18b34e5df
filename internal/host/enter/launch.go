package enter

import (
	"context"
	"os/exec"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A Launcher starts a program of this host that starts a container, such as lxc-start. Like a
// container, the program inherits none of the caller's descriptors, environment, keys, scheduling
// class or limits.
type Launcher struct {
	Args []string
	Dies bool // kill the program when the thread ends that started it (prctl(2), PR_SET_PDEATHSIG)
}

// Launch starts the program from the calling thread. That thread already has what the container
// will inherit (a mount namespace, a seccomp filter, a network namespace), and ends with its work
// (host.OnLockedThread). When ctx ends, the program is killed.
func (l Launcher) Launch(ctx context.Context, streams host.Streams) (*Process, error) {
	path, err := exec.LookPath(l.Args[0])
	if err != nil {
		return nil, problem.New(problem.Unable, "%s is not installed on this host", l.Args[0]).
			Try("apt-get install lxc; orrery doctor lists what else is missing")
	}
	b, release, err := newChildSpec(l.Args, []string{"PATH=" + host.Path, "LANG=C.UTF-8"}, []string{path}, streams)
	if err != nil {
		return nil, err
	}
	defer release()
	b.dies = l.Dies
	if err := host.DetachFromCaller(); err != nil {
		return nil, err
	}
	return b.start(ctx)
}
