package drift

import (
	"context"
	"fmt"
	"slices"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/distro"
)

// A Unit is a service that a role runs.
type Unit struct{ Name, Role string }

// maxOutputBytes limits the output of a node for one unit.
const maxOutputBytes = 4 << 10

// unitFaults are the drift of each fault of a service, and the desired state.
var unitFaults = map[distro.UnitProblem]struct {
	how  observe.DriftState
	want string
}{
	distro.Missing: {observe.Gone, "running"}, distro.NotRunning: {observe.NotRunning, "running"},
	distro.Disabled: {observe.NotEnabled, "enabled"},
}

// Services returns the drift of units that must be running and enabled.
func Services(ctx context.Context, node string, in host.Runner, sv *distro.Services, units []Unit) ([]observe.Drift,
	error) {
	if len(units) == 0 {
		return nil, nil
	}
	args := slices.Clone(sv.Show)
	for _, u := range units {
		args = append(args, u.Name)
	}
	said, err := host.Output(ctx, in, host.Command{Args: args}, maxOutputBytes*len(units))
	if err != nil {
		return nil, err
	}
	states := sv.Conditions(string(said))
	if len(states) != len(units) {
		return nil, fmt.Errorf("%s reported %d units instead of %d", sv.Name, len(states), len(units))
	}
	f := collector{node: node}
	for i, u := range units {
		if state := states[i]; state.Problem != "" {
			fault := unitFaults[state.Problem]
			f.add(observe.DriftService, fault.how, u.Name, u.Role, fault.want, state.Found)
		}
	}
	return f.all, nil
}
