package role

import (
	"context"
	"io"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// installUnlayered installs on a node without role layers what these layers would contain, for all roles that
// have changed. It does not remove what a role installed before and no longer has.
func (j *Job) installUnlayered(ctx context.Context) error {
	if !j.Duties.Unlayered {
		return nil
	}
	l := &spec.Layer{Title: "node " + j.Duties.Node, Image: site.Image{Distribution: j.Duties.Distribution},
		Pins: j.Duties.Pins}
	for i := range j.Duties.Roles {
		switch d := &j.Duties.Roles[i]; {
		case d.Name == spec.AccessRole: // it is the same on every node
		case j.difference().changed(d):
			l.Roles = append(l.Roles, d.Role)
		default:
			l.Under = append(l.Under, d.Role)
		}
	}
	if len(l.Roles) == 0 {
		return nil
	}
	return Build(ctx, j.In, l, installInPlace, j.Log, j.Say)
}

// installInPlace installs packages in a running node from the node's own package sources.
func installInPlace(ctx context.Context, in host.Runner, d *distro.Distribution, packages []string,
	log io.Writer) error {
	for _, command := range d.Packages.InPlace(packages) {
		if err := in.Run(ctx, host.Command{Args: command, Env: []string{"DEBIAN_FRONTEND=noninteractive"}, Stdout: log,
			Stderr: log}); err != nil {
			return problem.New(problem.Failed, "packages could not be installed in the node").Because(err).
				Try("let the node reach the archives of its %s: nat = true on a network with a gateway",
					d.Packages.Name)
		}
	}
	return nil
}
