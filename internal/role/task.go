package role

import (
	"context"
	"maps"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/spec"
)

// A task is the work for one role on a running node.
type task struct {
	duty  *spec.RoleAction
	files []host.File // to be installed
	// whole means that the role is applied: its steps run and all of its services restart, whatever
	// restart contains.
	whole   bool
	restart []string
	// These are needed only to repair drift.
	bring, enable, start []string
}

// runTasks performs tasks in the order of their roles. It first installs the files of all tasks, and then
// runs all boot steps. The services of a role may need what the boot steps of a role above it
// prepare. Steps that need services run after all services have started.
func (j *Job) runTasks(ctx context.Context, tasks []task) error {
	for _, t := range tasks {
		if err := j.putFiles(ctx, t.duty, t.files); err != nil {
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
		if err := j.serveTask(ctx, t); err != nil {
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

// serveTask restarts the services of a task. These are all services of the role, or only some if the
// role is not applied.
func (j *Job) serveTask(ctx context.Context, t task) error {
	if t.whole {
		return j.services(ctx, t.duty, t.duty.Services)
	}
	if err := j.services(ctx, t.duty, t.restart); err != nil {
		return err
	}
	if err := j.restartServices(ctx, t.duty, t.bring, t.enable); err != nil {
		return err
	}
	return j.runOnServices(ctx, t.duty, "start", j.initSystem().Start, t.start)
}

// newTasks returns an empty task for each role of a node.
func newTasks(d *spec.RoleActions) []task {
	tasks := make([]task, len(d.Roles))
	for i := range tasks {
		tasks[i].duty = &d.Roles[i]
	}
	return tasks
}

// changes returns the tasks that change the node from its current configuration to the desired one. A changed
// file restarts the services that it declares even if the rest of its role has changed as well, because they
// may be those of a role below, which is not applied.
func (j *Job) changes() []task {
	tasks, d := newTasks(j.Duties), j.difference()
	var restart []string
	for i := range tasks {
		t := &tasks[i]
		t.whole = d.changed(t.duty)
		services, exact := d.declaredRestarts(t.duty)
		if exact {
			t.files = filesAt(t.duty, d.altered(t.duty))
		}
		restart = append(restart, services...)
	}
	applyDependents(tasks)
	for i := range tasks {
		if t := &tasks[i]; t.whole {
			t.files = RenderedFiles(t.duty)
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

// applyDependents marks the roles that need an applied role, directly or indirectly, because their
// services use what that role installs.
func applyDependents(tasks []task) {
	applied := map[string]bool{}
	for i := range tasks { // needed roles come first
		t := &tasks[i]
		t.whole = holdsOrNeeds(applied, t.duty, t.whole)
	}
}

// holdsOrNeeds reports whether a property holds for a role, either for the role itself or for one that
// it needs. It adds the role to known, which must already contain all roles that it needs.
func holdsOrNeeds(known map[string]bool, r *spec.RoleAction, itself bool) bool {
	known[r.Name] = itself || slices.ContainsFunc(r.NeedsRoles, func(name string) bool { return known[name] })
	return known[r.Name]
}

// restartOnly adds restarts of services, whichever roles have them. It skips services whose role is
// applied anyway, and those that do not run on the node.
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

// A difference is the difference between the current and the desired configuration.
type difference struct{ was, is *spec.Config }

func (j *Job) difference() difference { return difference{&j.Was, &j.Is} }

// changed reports whether any part of the role on the node is new or different. It ignores files
// that declare which services restart.
func (d difference) changed(r *spec.RoleAction) bool {
	if _, exact := d.declaredRestarts(r); exact {
		return false
	}
	return len(d.altered(r)) > 0 || d.addsService(r)
}

// addsService reports whether the role has a service that the node did not have.
func (d difference) addsService(r *spec.RoleAction) bool {
	return slices.ContainsFunc(r.Services, func(s string) bool { return !slices.Contains(d.was.Services, s) })
}

// altered returns the parts of a role, without its name, that were added, removed or changed.
func (d difference) altered(r *spec.RoleAction) []string {
	parts := map[string]bool{}
	for _, key := range slices.Concat(spec.ChangedParts(d.was.Parts, d.is.Parts),
		spec.ChangedParts(d.was.Active, d.is.Active)) {
		if part, own := strings.CutPrefix(key, r.Name+": "); own {
			parts[part] = true
		}
	}
	for _, stored := range spec.ChangedSecrets(d.was, d.is) {
		name, _ := secretspec.Split(stored)
		if slices.ContainsFunc(r.Secrets, func(use site.SecretUse) bool { return use.Name == name }) {
			parts["secret "+name] = true
		}
	}
	return slices.Sorted(maps.Keys(parts))
}

// declaredRestarts returns the services that changed files of a role declare to restart. It returns false if
// the role must be applied, because something else has changed. After an interrupted run no part counts as
// existing, because it is unknown which services have restarted.
func (d difference) declaredRestarts(r *spec.RoleAction) (services []string, exact bool) {
	all := d.altered(r)
	added := func(part string) bool { _, found := d.was.Parts[r.Name+": "+part]; return !found }
	services, exact = restartsDeclaredBy(r, all)
	return services, exact && len(all) > 0 && !d.addsService(r) && !slices.ContainsFunc(all, added)
}

// restartsDeclaredBy returns the services that changed parts of a role declare to restart. It returns false
// unless all parts are files that declare this.
func restartsDeclaredBy(r *spec.RoleAction, parts []string) (services []string, exact bool) {
	exact = true
	for _, part := range parts {
		i := slices.IndexFunc(r.Files, func(f site.File) bool { return part == "file "+f.Path })
		if i < 0 || r.Files[i].Restarts == nil {
			exact = false
			continue
		}
		services = append(services, r.Files[i].Restarts...)
	}
	return services, exact
}

// filesAt returns the rendered files of a role that are among parts.
func filesAt(r *spec.RoleAction, parts []string) []host.File {
	return slices.DeleteFunc(RenderedFiles(r), func(f host.File) bool { return !slices.Contains(parts, "file "+f.Path) })
}
