package role

import (
	"context"
	"slices"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// Activate runs on a node what only a live node runs, each role after those that it needs. It
// applies roles with exclusive volumes again, because their files and boot steps prepare the
// content of the volumes.
func (j *Job) Activate(ctx context.Context) error {
	if err := j.reapply(ctx, volumeUsers(j.Duties)); err != nil {
		return err
	}
	for i := range j.Duties.Roles {
		if err := j.activateRole(ctx, &j.Duties.Roles[i]); err != nil {
			return err
		}
	}
	return nil
}

// reapply applies roles whose services are stopped, in the same order as Configure. Unlike services,
// it does not restart a service that a boot step has already started. A restart would delay the
// time when the node serves again.
func (j *Job) reapply(ctx context.Context, roles []*spec.RoleAction) error {
	begin := func(ctx context.Context, r *spec.RoleAction) error {
		return j.runOnServices(ctx, r, "enable", j.initSystem().Begin, r.Services)
	}
	steps := func(when string) func(context.Context, *spec.RoleAction) error {
		return func(ctx context.Context, r *spec.RoleAction) error { return j.steps(ctx, r, when) }
	}
	for _, do := range []func(context.Context, *spec.RoleAction) error{
		j.files, steps(site.Boot), begin, steps(site.Started)} {
		for _, r := range roles {
			if err := do(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Retire stops on a node what only a live node runs, and the services that use exclusive volumes.
// It proceeds in the opposite order.
func (j *Job) Retire(ctx context.Context) error {
	for i := range slices.Backward(j.Duties.Roles) {
		r := &j.Duties.Roles[i]
		if err := j.runOnServices(ctx, r, "disable", j.initSystem().End, r.Active); err != nil {
			return err
		}
	}
	return j.ReleaseVolumes(ctx)
}

// ReleaseVolumes stops the services that use exclusive volumes, so that the volumes can be unmounted. Services
// that start first stop last.
func (j *Job) ReleaseVolumes(ctx context.Context) error {
	for _, r := range slices.Backward(volumeUsers(j.Duties)) {
		services := slices.Clone(r.Services)
		slices.Reverse(services)
		if err := j.runOnServices(ctx, r, "stop", j.initSystem().Stop, services); err != nil {
			return err
		}
	}
	return nil
}

// Resume starts the services that ReleaseVolumes has stopped.
func (j *Job) Resume(ctx context.Context) error {
	for _, r := range volumeUsers(j.Duties) {
		if err := j.runOnServices(ctx, r, "start", j.initSystem().Start, r.Services); err != nil {
			return err
		}
	}
	return nil
}

// volumeUsers returns the roles of a node that use exclusive volumes. They are the roles that declare
// one, and all roles that need such a role, directly or indirectly. A database may have its volume
// in a role below the one with its server.
func volumeUsers(d *spec.RoleActions) []*spec.RoleAction {
	var roles []*spec.RoleAction
	holding := map[string]bool{}
	for i := range d.Roles { // needed roles come first
		if r := &d.Roles[i]; holdsOrNeeds(holding, r, r.Exclusive()) {
			roles = append(roles, r)
		}
	}
	return roles
}

// NeedsActivation reports whether a node has roles with exclusive volumes, or roles that run something only
// on live nodes.
func NeedsActivation(d *spec.RoleActions) bool {
	return slices.ContainsFunc(rolesOf(d), func(r *site.Role) bool { return r.Exclusive() || r.ActiveOnly() })
}

// activateRole runs the active steps of a role. Then it starts its active services and enables them at
// boot.
func (j *Job) activateRole(ctx context.Context, r *spec.RoleAction) error {
	if err := j.steps(ctx, r, site.Active); err != nil {
		return err
	}
	return j.runOnServices(ctx, r, "enable", j.initSystem().Begin, r.Active)
}

// initSystem returns the init system of the node.
func (j *Job) initSystem() *distro.Services { return distro.OrDefault(j.Duties.Distribution).Services }

// runOnServices runs a command on services. Argument word names it in messages.
func (j *Job) runOnServices(ctx context.Context, r *spec.RoleAction, word string, runOnServices,
	services []string) error {
	if len(services) == 0 {
		return nil
	}
	j.Say("role " + r.Name + ": " + word + " services")
	if err := j.run(ctx, runOnServices, services); err != nil {
		return problem.New(problem.Failed, "role %s: %s of its services failed", r.Name, word).
			At("node "+j.Duties.Node).Because(err).Try("see orrery logs %s", j.Duties.Node)
	}
	return nil
}

func (j *Job) run(ctx context.Context, order, services []string) error {
	return j.In.Run(ctx, host.Command{Args: slices.Concat(order, services), Stdout: j.Log, Stderr: j.Log})
}
