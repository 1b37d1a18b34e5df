package role

import (
	"context"
	"slices"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// Mend puts right what of a running node has drifted, apart from what its layers have, which is there again. A role of which a file was not as it
// makes it is applied as if it had changed: those files, boot steps, services. Of the others only those services are touched that did not run, unless
// a program was changed that any of them may have running, or nothing but a health check tells that something is wrong.
func (j *Job) Mend(ctx context.Context, drift []observe.Drift) error {
	again := map[string][]string{} // roles that are applied again, and their files that have drifted
	var start, enable []string
	sick := map[string]bool{}
	altered, silent := false, false
	for _, d := range drift {
		switch {
		case d.Kind == observe.DriftFile:
			again[d.Role] = append(again[d.Role], d.Subject)
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
	alone := !silent && len(sick) > 0 && len(again)+len(start)+len(enable) == 0 && !altered
	for i := range j.Duties.Roles {
		r := &j.Duties.Roles[i]
		own := j.running(r)
		if paths := again[r.Name]; paths != nil {
			if err := j.again(ctx, r, paths); err != nil {
				return err
			}
			continue
		}
		restart := intersection(own, start)
		if altered || alone && sick[r.Name] {
			restart = own
		}
		if err := j.bring(ctx, r, restart, intersection(own, enable)); err != nil {
			return err
		}
		if silent { // nobody could say which of them run
			if err := j.order(ctx, r, "start", j.sv().Start, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// again applies a role anew of which some files have drifted. The others are as they shall be, or the node's to change.
func (j *Job) again(ctx context.Context, r *spec.Duty, paths []string) error {
	all := slices.DeleteFunc(Files(r), func(f host.File) bool { return !slices.Contains(paths, f.Path) })
	if err := j.put(ctx, r, all); err != nil {
		return err
	}
	return j.work(ctx, r)
}

// running gives the services of a role that run on the node now.
func (j *Job) running(r *spec.Duty) []string {
	if !j.Live {
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

// bring lets services of a role run anew, and others start at each boot. What somebody has masked is unmasked, and how often it has failed
// forgotten.
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
