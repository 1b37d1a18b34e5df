package role

import (
	"context"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// Repair repairs the drift of a running node. Files of the layers have already been restored.
//
// A role with a drifted file is applied as if the file had changed: its files, boot steps and
// services, and the roles that need it. Of other roles, Repair only restarts services that were not
// running. It restarts all services if a program was altered, because any of them may be running
// it. If a failing health check is the only drift, it restarts the services that the check depends
// on.
func (j *Job) Repair(ctx context.Context, drift []observe.Drift) error {
	again := map[string][]string{} // drifted parts, by role
	var start, enable []string
	sick := map[string]bool{}
	altered, silent := false, false
	for _, d := range drift {
		switch {
		case d.Kind == observe.DriftFile:
			again[d.Role] = append(again[d.Role], "file "+d.Subject)
		case d.Kind == observe.DriftProgram:
			altered = altered || d.How != observe.Gone
		case d.Kind == observe.DriftService && d.How == observe.NotEnabled:
			enable = append(enable, d.Subject)
		case d.Kind == observe.DriftService:
			start = append(start, d.Subject)
		case d.Kind == observe.DriftHealth:
			sick[d.Role] = true
		case d.Kind == observe.DriftNode:
			silent = true
		}
	}
	var tried []string // services that the failing checks depend on
	for i := range j.Duties.Roles {
		if r := &j.Duties.Roles[i]; sick[r.Name] {
			tried = append(tried, servicesChecked(j.Duties, r)...)
		}
	}
	alone := !silent && len(sick) > 0 && len(again)+len(start)+len(enable) == 0 && !altered
	tasks := newTasks(j.Duties)
	var exact []string
	for i := range tasks {
		t := &tasks[i]
		own := running(t.duty, j.Live)
		// The other files are unchanged, or the node may change them.
		if parts := again[t.duty.Name]; parts != nil {
			t.files = filesAt(t.duty, parts)
			services, ok := restartsDeclaredBy(t.duty, parts)
			t.whole, exact = !ok, append(exact, services...)
		}
		t.bring, t.enable = intersection(own, start), intersection(own, enable)
		switch {
		case altered:
			t.bring = own
		case alone:
			t.bring = intersection(own, tried)
		}
		if silent { // it is unknown which of them run
			t.start = own
		}
	}
	applyDependents(tasks)
	restartOnly(tasks, exact, j.Live)
	if err := j.runTasks(ctx, tasks); err != nil {
		return err
	}
	return j.watch(ctx, tasks) // a service that had ended may end again immediately
}

// running returns the services of a role that run on a node. Argument live is whether the node is
// live.
func running(r *spec.RoleAction, live bool) []string {
	if !live {
		return r.Services
	}
	return slices.Concat(r.Services, r.Active)
}

func intersection(all, some []string) []string {
	var both []string
	for _, one := range all {
		if slices.Contains(some, one) {
			both = append(both, one)
		}
	}
	return both
}

// restartServices restarts some services of a role, and enables others at boot. It first unmasks masked units
// and resets their failure counts.
func (j *Job) restartServices(ctx context.Context, r *spec.RoleAction, restart, enable []string) error {
	all := slices.Concat(restart, enable)
	if len(all) == 0 {
		return nil
	}
	_ = j.run(ctx, j.initSystem().Unmask, all) // ignore the error of a unit that is not masked
	if err := j.runOnServices(ctx, r, "enable", j.initSystem().Enable, all); err != nil {
		return err
	}
	if len(restart) == 0 {
		return nil
	}
	_ = j.run(ctx, j.initSystem().Forgive, all) // ignore the error of an unknown unit
	return j.services(ctx, r, restart)
}
