package drift

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/observe"
)

// A Unit is one that a role lets run.
type Unit struct{ Name, Role string }

// properties are what is asked of each unit (systemctl(1), org.freedesktop.systemd1(5)).
var properties = []string{
	"LoadState", "ActiveState", "SubState", "UnitFileState", "Result", "Type", "RemainAfterExit", "ConditionResult", "ConditionTimestampMonotonic", "Job",
}

// mostSaid is how much a node may say of one unit.
const mostSaid = 4 << 10

// Services gives what has become of units that are to run and to be enabled.
func Services(ctx context.Context, node string, in host.Runner, units []Unit) ([]observe.Drift, error) {
	if len(units) == 0 {
		return nil, nil
	}
	args := []string{"systemctl", "show", "--property=" + strings.Join(properties, ","), "--"}
	for _, u := range units {
		args = append(args, u.Name)
	}
	said, err := host.Output(ctx, in, host.Command{Args: args}, mostSaid*len(units))
	if err != nil {
		return nil, err
	}
	states := parse(string(said))
	if len(states) != len(units) {
		return nil, fmt.Errorf("systemctl told of %d units, and was asked for %d", len(states), len(units))
	}
	f := finding{node: node}
	for i, u := range units {
		if how, want, found := states[i].verdict(); how != "" {
			f.add(observe.DriftService, how, u.Name, u.Role, want, found)
		}
	}
	return f.all, nil
}

// A state is what systemd says of a unit, by property.
type state map[string]string

// parse reads what systemctl show prints: a block of lines for each unit, with an empty line between two.
func parse(text string) []state {
	var all []state
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		s := state{}
		for line := range strings.Lines(block) {
			if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok && slices.Contains(properties, key) {
				s[key] = value
			}
		}
		if len(s) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// results are the words for why a unit has failed (systemd.exec(5)); what a node says besides is not repeated.
var results = []string{
	"exit-code", "signal", "core-dump", "watchdog", "start-limit-hit", "timeout", "oom-kill", "resources", "protocol", "exec-condition", "condition",
}

// verdict says how a unit is not as it is to be; how is "" if it is.
func (s state) verdict() (how observe.DriftHow, want, found string) {
	const running = "running"
	off := s["UnitFileState"] == "disabled" || strings.HasPrefix(s["UnitFileState"], "masked")
	because := ""
	if slices.Contains(results, s["Result"]) {
		because = " (" + s["Result"] + ")"
	}
	switch {
	case strings.HasPrefix(s["UnitFileState"], "masked") || s["LoadState"] == "masked":
		return observe.Halted, running, "masked"
	case s["LoadState"] == "not-found":
		return observe.Gone, running, "unknown to systemd"
	case s["LoadState"] != "loaded":
		return observe.Halted, running, "not readable by systemd"
	case s["ActiveState"] == "failed":
		return observe.Halted, running, "failed" + because
	case s["ActiveState"] == "activating" && s["SubState"] == "auto-restart":
		return observe.Halted, running, "failing again and again" + because
	case s["ActiveState"] == "inactive" && !s.done() && !s.awaited() || s["ActiveState"] == "deactivating":
		return observe.Halted, running, "stopped"
	case off:
		return observe.Unenabled, "enabled", "disabled"
	}
	return "", "", ""
}

// awaited reports whether a unit that does not run is about to be started, because the node boots.
func (s state) awaited() bool { return s["Job"] != "" && s["Job"] != "0" }

// done reports whether a unit that does not run has done what it is for: a service that ends by itself, or one whose conditions do not hold.
func (s state) done() bool {
	once := s["Type"] == "oneshot" && s["Result"] == "success" && s["RemainAfterExit"] != "yes"
	tried := s["ConditionTimestampMonotonic"] != "" && s["ConditionTimestampMonotonic"] != "0"
	return tried && (once || s["ConditionResult"] == "no")
}
