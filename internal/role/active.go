package role

import (
	"context"
	"slices"

	"orrery/internal/distro"
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
	if err := j.order(ctx, r, "enable", j.sv().Begin, r.Services); err != nil {
		return err
	}
	if err := j.steps(ctx, r, site.Started); err != nil {
		return err
	}
	return j.active(ctx, r)
}

// Retire ends on a node what only a live node does, and the services of roles with volumes that are not for two, in the opposite order.
func (j *Job) Retire(ctx context.Context) error {
	for i := range slices.Backward(j.Duties.Roles) {
		r := &j.Duties.Roles[i]
		if err := j.order(ctx, r, "disable", j.sv().End, r.Active); err != nil {
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
		if err := j.order(ctx, r, "stop", j.sv().Stop, services); err != nil {
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
		if err := j.order(ctx, r, "start", j.sv().Start, r.Services); err != nil {
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
	return j.order(ctx, r, "enable", j.sv().Begin, r.Active)
}

// sv is who runs the services of the node.
func (j *Job) sv() *distro.Services { return distro.Or(j.Duties.Distribution).Services }

// order gives an order of which the word in messages is another.
func (j *Job) order(ctx context.Context, r *spec.Duty, word string, order, services []string) error {
	if len(services) == 0 {
		return nil
	}
	j.Say("role " + r.Name + ": " + word + " services")
	if err := j.run(ctx, order, services); err != nil {
		return problem.New(problem.Failed, "role %s: %s of its services failed", r.Name, word).
			At("node "+j.Duties.Node).Because(err).Try("orrery logs %s tells more", j.Duties.Node)
	}
	return nil
}

func (j *Job) run(ctx context.Context, order, services []string) error {
	return j.In.Run(ctx, host.Command{Args: slices.Concat(order, services), Stdout: j.Log, Stderr: j.Log})
}
