package image

import (
	"context"
	"io"

	"orrery/internal/host"
)

// Offered gives what the archives of a scratch say of packages, in all versions that they have, as paragraphs of deb-control(5).
func (s *Store) Offered(ctx context.Context, in host.Runner, names []string, log io.Writer) ([]byte, error) {
	a, err := s.aptOf(ctx, in, log)
	if err != nil {
		return nil, err
	}
	reading, err := a.readLists(ctx, false)
	if err != nil {
		return nil, err
	}
	defer reading.Release()
	// It also fails if one of many names is unknown, which is for the caller to see.
	script := `apt-cache "$@" || true`
	args := append([]string{"/bin/sh", "-c", script, "apt-cache"}, a.args...)
	args = append(append(args, "show", "--all-versions"), names...)
	return host.Output(ctx, in, host.Command{Args: args, Stderr: log}, 256<<20)
}

// Fetch has apt download packages, NAME=VERSION, into the directory Out of a scratch. apt checks them as when it installs them.
func (s *Store) Fetch(ctx context.Context, in host.Runner, packages []string, log io.Writer) error {
	a, err := s.aptOf(ctx, in, log)
	if err != nil {
		return err
	}
	reading, err := a.readLists(ctx, false)
	if err != nil {
		return err
	}
	defer reading.Release()
	args := append([]string{"/bin/sh", "-c", `cd "$0" && exec apt-get -qq "$@"`, Out}, a.args...)
	args = append(append(args, "download"), packages...)
	if err := in.Run(ctx, host.Command{Args: args, Stdout: log, Stderr: log}); err != nil {
		return aptProblem(packages, err)
	}
	return nil
}
