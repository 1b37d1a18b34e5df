package role

import (
	"context"
	"errors"
	"slices"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

const (
	// watchTime is how long services are watched after all services of a node have started.
	watchTime = 500 * time.Millisecond
	// maxShownBytes limits the status output of one service.
	maxShownBytes = 4 << 10
)

// watch returns a problem if a service that tasks have started exits immediately or keeps
// restarting. systemd counts a service of Type=simple as started before its program has done
// anything. Services with a health check are left to that check, which gives them the time that
// they need. watch observes all services at once, and only if at least one of them may not have
// started yet.
func (j *Job) watch(ctx context.Context, tasks []task) error {
	units, roles := unchecked(j.Duties, tasks, j.Live)
	_, first := j.unitStates(ctx, units)
	if !slices.ContainsFunc(first, func(l distro.StartInfo) bool { return l.Unproven }) {
		return nil
	}
	if err := host.Sleep(ctx, watchTime); err != nil {
		return err
	}
	conditions, launches := j.unitStates(ctx, units)
	for i, l := range launches {
		found := conditions[i].Found
		switch fault := conditions[i].Problem; {
		case !l.Unproven:
			continue
		case l.Restarts > first[i].Restarts:
			found = "started repeatedly"
		case fault != distro.NotRunning && fault != distro.Missing:
			continue
		}
		err := errors.New("it is " + found)
		if words := lastOutput(ctx, j.In, j.initSystem(), units[i]); words != "" {
			err = errors.New(err.Error() + "\n" + words)
		}
		return problem.New(problem.Failed, "role %s: service %s exits immediately after its start", roles[i], units[i]).
			At("node "+j.Duties.Node).Because(err).
			Try("see orrery logs %s; a service that exits by design needs Type=oneshot", j.Duties.Node)
	}
	return nil
}

// unchecked returns the services that tasks have started and no health check covers, with their
// roles.
func unchecked(d *spec.RoleActions, tasks []task, live bool) (units, roles []string) {
	checked := map[string]bool{}
	for i := range d.Roles {
		if r := &d.Roles[i]; len(r.Health) > 0 {
			for _, unit := range servicesChecked(d, r) {
				checked[unit] = true
			}
		}
	}
	for _, t := range tasks {
		started := slices.Concat(t.restart, t.bring, t.start)
		if t.whole {
			started = running(t.duty, live)
		}
		for _, unit := range started {
			if !checked[unit] {
				checked[unit] = true
				units, roles = append(units, unit), append(roles, t.duty.Name)
			}
		}
	}
	return units, roles
}

// unitStates queries the states of services. It returns nothing if the node does not report all of them.
func (j *Job) unitStates(ctx context.Context, units []string) ([]distro.UnitState, []distro.StartInfo) {
	if len(units) == 0 {
		return nil, nil
	}
	said, err := host.Output(ctx, j.In, host.Command{Args: slices.Concat(j.initSystem().Show, units)},
		maxShownBytes*len(units))
	if err != nil {
		return nil, nil
	}
	conditions, launches := j.initSystem().Conditions(string(said)), j.initSystem().Launches(string(said))
	if len(conditions) != len(units) {
		return nil, nil
	}
	return conditions, launches
}
