package role

import (
	"context"
	"slices"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Activate does on a running node what only a live node does, each role after those that it needs. A role with volumes that
// are not for two is applied anew, because its files and boot steps see to what is on them.
func (j *Job) Activate(ctx context.Context) error {
	for i := range j.Duties.Roles {
		r := &j.Duties.Roles[i]
		if r.Exclusive() {
			if err := j.anew(ctx, r); err != nil {
				return err
			}
			continue
		}
		if err := j.active(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// anew applies a role whose services stand still. One that a boot step starts is not started a second time, as services would: until it
// serves, nobody is served.
func (j *Job) anew(ctx context.Context, r *spec.Duty) error {
	if err := j.files(ctx, r); err != nil {
		return err
	}
	if err := j.steps(ctx, r, site.Boot); err != nil {
		return err
	}
	if err := j.systemctl(ctx, r, r.Services, "enable", "--now", "--quiet"); err != nil {
		return err
	}
	return j.active(ctx, r)
}

// Retire ends on a node what only a live node does, and the services of roles with volumes that are not for two, in the opposite order.
func (j *Job) Retire(ctx context.Context) error {
	for i := range slices.Backward(j.Duties.Roles) {
		r := &j.Duties.Roles[i]
		if err := j.systemctl(ctx, r, r.Active, "disable", "--now", "--quiet"); err != nil {
			return err
		}
	}
	return j.Let(ctx)
}

// Let stops the services of roles with volumes that are not for two, so that these can be taken away. Those that start first stop last.
func (j *Job) Let(ctx context.Context) error {
	for i := range slices.Backward(j.Duties.Roles) {
		r := &j.Duties.Roles[i]
		if !r.Exclusive() {
			continue
		}
		services := slices.Clone(r.Services)
		slices.Reverse(services)
		if err := j.systemctl(ctx, r, services, "stop"); err != nil {
			return err
		}
	}
	return nil
}

// Resume starts the services that Let has stopped.
func (j *Job) Resume(ctx context.Context) error {
	for i := range j.Duties.Roles {
		r := &j.Duties.Roles[i]
		if !r.Exclusive() {
			continue
		}
		if err := j.systemctl(ctx, r, r.Services, "start"); err != nil {
			return err
		}
	}
	return nil
}

// Holders reports whether a node has roles with volumes that are not for two, or that do something on live nodes only.
func Holders(d *spec.Duties) bool {
	return slices.ContainsFunc(rolesOf(d), func(r *site.Role) bool { return r.Exclusive() || r.LiveOnly() })
}

// active does the active steps of a role and starts its active services, also at each boot from now on.
func (j *Job) active(ctx context.Context, r *spec.Duty) error {
	if err := j.steps(ctx, r, site.Active); err != nil {
		return err
	}
	return j.systemctl(ctx, r, r.Active, "enable", "--now", "--quiet")
}

func (j *Job) systemctl(ctx context.Context, r *spec.Duty, services []string, verb ...string) error {
	if len(services) == 0 {
		return nil
	}
	j.Say("role " + r.Name + ": " + verb[0] + " services")
	args := slices.Concat([]string{"systemctl"}, verb, services)
	if err := j.In.Run(ctx, host.Command{Args: args, Stdout: j.Log, Stderr: j.Log}); err != nil {
		return problem.New(problem.Failed, "role %s: %s of its services failed", r.Name, verb[0]).
			At("node "+j.Duties.Node).Because(err).Try("orrery logs %s tells more", j.Duties.Node)
	}
	return nil
}
