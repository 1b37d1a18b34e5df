package role

import (
	"context"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// Mend puts right what of a running node has drifted, apart from what its layers have, which is
// there again. A role of which a file was not as it makes it is applied as if that had changed:
// those files, boot steps, services, and the roles that need it. Of the others only those services
// are touched that did not run, unless a program was changed that any of them may have running, or
// nothing but a health check tells that something is wrong.
func (j *Job) Mend(ctx context.Context, drift []observe.Drift) error {
	again := map[string][]string{} // parts of roles that have drifted
	var start, enable []string
	sick := map[string]bool{}
	altered, silent := false, false
	for _, d := range drift {
		switch {
		case d.Kind == observe.DriftFile:
			again[d.Role] = append(again[d.Role], "file "+d.Subject)
		case d.Kind == observe.DriftProgram:
			altered = altered || d.How != observe.Gone
		case d.Kind == observe.DriftService && d.How == observe.Unenabled:
			enable = append(enable, d.Subject)
		case d.Kind == observe.DriftService:
			start = append(start, d.Subject)
		case d.Kind == observe.DriftHealth:
			sick[d.Role] = true
		case d.Kind == observe.DriftNode:
			silent = true
		}
	}
	var tried []string // services behind the checks that fail
	for i := range j.Duties.Roles {
		if r := &j.Duties.Roles[i]; sick[r.Name] {
			tried = append(tried, behind(j.Duties, r)...)
		}
	}
	alone := !silent && len(sick) > 0 && len(again)+len(start)+len(enable) == 0 && !altered
	tasks := newTasks(j.Duties)
	var exact []string
	for i := range tasks {
		t := &tasks[i]
		own := running(t.duty, j.Live)
		if parts := again[t.duty.Name]; parts != nil { // the other files are as they shall be, or the node's to change
			t.files = filesAt(t.duty, parts)
			services, ok := exactly(t.duty, parts)
			t.whole, exact = !ok, append(exact, services...)
		}
		t.bring, t.enable = intersection(own, start), intersection(own, enable)
		switch {
		case altered:
			t.bring = own
		case alone:
			t.bring = intersection(own, tried)
		}
		if silent { // nobody could say which of them run
			t.start = own
		}
	}
	applyAbove(tasks)
	restartOnly(tasks, exact, j.Live)
	if err := j.do(ctx, tasks); err != nil {
		return err
	}
	return j.watch(ctx, tasks) // one that had ended may end again at once
}

// running returns the services of a role that run on a node, which is live or not.
func running(r *spec.Duty, live bool) []string {
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

// bring lets services of a role run anew, and others start at each boot. What somebody has masked
// is unmasked, and how often it has failed forgotten.
func (j *Job) bring(ctx context.Context, r *spec.Duty, restart, enable []string) error {
	all := slices.Concat(restart, enable)
	if len(all) == 0 {
		return nil
	}
	_ = j.run(ctx, j.sv().Unmask, all) // what is not masked is no fault
	if err := j.order(ctx, r, "enable", j.sv().Enable, all); err != nil {
		return err
	}
	if len(restart) == 0 {
		return nil
	}
	_ = j.run(ctx, j.sv().Forgive, all) // what is not known is none either
	return j.services(ctx, r, restart)
}
