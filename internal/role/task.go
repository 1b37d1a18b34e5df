package role

import (
	"context"
	"maps"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A task is what is done for one role on a node that runs.
type task struct {
	duty  *spec.Duty
	files []host.File // to be put there
	// whole: the role is applied, so its steps run and all of its services restart, whatever restart says.
	whole   bool
	restart []string
	// Only drift makes the rest necessary.
	bring, enable, start []string
}

// do does tasks, which are in the order of their roles. The files of all come first, then the boot
// steps of all: services of a role may need what the boot steps of a role above it prepare. What
// needs services is done once all of them have started.
func (j *Job) do(ctx context.Context, tasks []task) error {
	for _, t := range tasks {
		if err := j.put(ctx, t.duty, t.files); err != nil {
			return err
		}
	}
	whole := slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return !t.whole })
	for _, t := range whole {
		if err := j.steps(ctx, t.duty, site.Boot); err != nil {
			return err
		}
	}
	for _, t := range tasks {
		if err := j.serve(ctx, t); err != nil {
			return err
		}
	}
	for _, t := range whole {
		if err := j.steps(ctx, t.duty, site.Started); err != nil {
			return err
		}
	}
	if !j.Live {
		return nil
	}
	for _, t := range whole {
		if err := j.steps(ctx, t.duty, site.Active); err != nil {
			return err
		}
		if err := j.services(ctx, t.duty, t.duty.Active); err != nil {
			return err
		}
	}
	return nil
}

// serve restarts the services of a task: all, or of a role that is not applied some.
func (j *Job) serve(ctx context.Context, t task) error {
	if t.whole {
		return j.services(ctx, t.duty, t.duty.Services)
	}
	if err := j.services(ctx, t.duty, t.restart); err != nil {
		return err
	}
	if err := j.bring(ctx, t.duty, t.bring, t.enable); err != nil {
		return err
	}
	return j.order(ctx, t.duty, "start", j.sv().Start, t.start)
}

// newTasks returns an empty task for each role of a node.
func newTasks(d *spec.Duties) []task {
	tasks := make([]task, len(d.Roles))
	for i := range tasks {
		tasks[i].duty = &d.Roles[i]
	}
	return tasks
}

// changes returns the tasks that take the node from the configuration that it has to the one that
// it is to have.
func (j *Job) changes() []task {
	tasks, d := newTasks(j.Duties), j.difference()
	var restart []string
	for i := range tasks {
		t := &tasks[i]
		t.whole = d.changed(t.duty)
		if services, exact := d.exact(t.duty); exact {
			t.files = filesAt(t.duty, d.altered(t.duty))
			restart = append(restart, services...)
		}
	}
	applyAbove(tasks)
	for i := range tasks {
		if t := &tasks[i]; t.whole {
			t.files = Files(t.duty)
		}
	}
	restartOnly(tasks, restart, j.Live)
	if j.Injected {
		for i := range tasks {
			tasks[i].files = nil
		}
	}
	return tasks
}

// applyAbove has the roles applied that need one that is applied, directly or not: their services
// use what that has made.
func applyAbove(tasks []task) {
	applied := map[string]bool{}
	for i := range tasks { // needed roles come first
		t := &tasks[i]
		t.whole = orAbove(applied, t.duty, t.whole)
	}
}

// orAbove reports whether something holds for a role: by itself, or because it holds for one that
// the role needs. It adds the role to those that are known, which must have all that it needs.
func orAbove(known map[string]bool, r *spec.Duty, itself bool) bool {
	known[r.Name] = itself || slices.ContainsFunc(r.NeedsRoles, func(name string) bool { return known[name] })
	return known[r.Name]
}

// restartOnly has services restarted, whichever roles have them, unless their role is applied
// anyway or they do not run on the node.
func restartOnly(tasks []task, services []string, live bool) {
	restarted := map[string]bool{}
	for i := range tasks {
		t := &tasks[i]
		for _, s := range running(t.duty, live) {
			restarted[s] = restarted[s] || t.whole
		}
	}
	for i := range tasks {
		t := &tasks[i]
		for _, s := range intersection(running(t.duty, live), services) {
			if !restarted[s] {
				t.restart, restarted[s] = append(t.restart, s), true
			}
		}
	}
}

// A difference is what a node is to have other than it had.
type difference struct{ was, is *spec.Config }

func (j *Job) difference() difference { return difference{&j.Was, &j.Is} }

// changed reports whether anything that the role does on the node is new or other than before,
// apart from files that say what restarts when they change.
func (d difference) changed(r *spec.Duty) bool {
	if _, exact := d.exact(r); exact {
		return false
	}
	return len(d.altered(r)) > 0 || d.gains(r)
}

// gains reports whether the node has not had a service of the role.
func (d difference) gains(r *spec.Duty) bool {
	return slices.ContainsFunc(r.Services, func(s string) bool { return !slices.Contains(d.was.Services, s) })
}

// altered returns the parts of a role, without its name, that are new, gone or other than before.
func (d difference) altered(r *spec.Duty) []string {
	parts := map[string]bool{}
	for _, key := range slices.Concat(spec.Changed(d.was.Parts, d.is.Parts), spec.Changed(d.was.Active, d.is.Active)) {
		if part, own := strings.CutPrefix(key, r.Name+": "); own {
			parts[part] = true
		}
	}
	return slices.Sorted(maps.Keys(parts))
}

// exact returns the services that restart for a role of which nothing has changed but files that
// say which ones do, or false if that is not so. After a run that was cut short nothing counts as
// there: which services have restarted is not known.
func (d difference) exact(r *spec.Duty) (services []string, ok bool) {
	all := d.altered(r)
	added := func(part string) bool { _, found := d.was.Parts[r.Name+": "+part]; return !found }
	if len(all) == 0 || d.gains(r) || slices.ContainsFunc(all, added) {
		return nil, false
	}
	return exactly(r, all)
}

// exactly returns the services that restart for changed parts of a role, if all of those are files
// that say which ones do.
func exactly(r *spec.Duty, parts []string) (services []string, ok bool) {
	for _, part := range parts {
		i := slices.IndexFunc(r.Files, func(f site.File) bool { return part == "file "+f.Path })
		if i < 0 || r.Files[i].Restarts == nil {
			return nil, false
		}
		services = append(services, r.Files[i].Restarts...)
	}
	return services, true
}

// filesAt returns those rendered files of a role that are among some parts of it.
func filesAt(r *spec.Duty, parts []string) []host.File {
	return slices.DeleteFunc(Files(r), func(f host.File) bool { return !slices.Contains(parts, "file "+f.Path) })
}
