package image

import (
	"context"
	"io"

	"orrery/internal/host"
	"orrery/internal/site/distro"
)

// Available returns what the package archives of a scratch container say about packages, in all
// versions that they have. For apt, these are paragraphs of deb-control(5).
func (c Cache) Available(ctx context.Context, in host.Runner, d *distro.Distribution, names []string,
	log io.Writer) (said []byte, err error) {
	err = c.withInstaller(ctx, in, d, log, func(i *installer) error {
		said, err = host.Output(ctx, in, host.Command{Args: i.Packages.Offered(i.program, names), Stderr: log}, 256<<20)
		return err
	})
	return said, err
}

// Fetch downloads packages, given as NAME=VERSION, into OutputDir of a scratch container.
// They are verified as for an installation.
func (c Cache) Fetch(ctx context.Context, in host.Runner, d *distro.Distribution, packages []string,
	log io.Writer) error {
	return c.withInstaller(ctx, in, d, log, func(i *installer) error {
		err := in.Run(ctx, host.Command{Args: i.Packages.Download(i.program, OutputDir, packages), Stdout: log, Stderr: log})
		if err != nil {
			return notInstalled(d, packages, err)
		}
		return nil
	})
}

// withInstaller calls do while it holds the lock of the container's package lists.
func (c Cache) withInstaller(ctx context.Context, in host.Runner, d *distro.Distribution, log io.Writer,
	do func(*installer) error) error {
	i, err := c.installer(ctx, in, d, log)
	if err != nil {
		return err
	}
	lists, err := i.readLists(ctx, false)
	if err != nil {
		return err
	}
	defer lists.Release()
	return do(i)
}
