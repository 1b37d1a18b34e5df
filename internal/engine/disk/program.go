package disk

import (
	"context"
	"os/exec"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A program of the host, and the Debian package that contains it.
type program struct{ name, from string }

var (
	qemuImg = program{"qemu-img", "qemu-utils"}
	mke2fs  = program{"mke2fs", "e2fsprogs"}
	blkid   = program{"blkid", "util-linux"}
	wipefs  = program{"wipefs", "util-linux"}
)

func (p program) path() (string, error) {
	path, err := exec.LookPath(p.name)
	if err != nil {
		return "", problem.New(problem.Unable, "%s is not installed on this host", p.name).Try("apt-get install %s", p.from)
	}
	return path, nil
}

// runTool runs a program on a file or device that this package has made.
func runTool(ctx context.Context, p program, args ...string) error {
	path, err := p.path()
	if err != nil {
		return err
	}
	return host.Local{Name: "host"}.Run(ctx,
		host.Command{Args: append([]string{path}, args...), Env: []string{"LC_ALL=C"}})
}
