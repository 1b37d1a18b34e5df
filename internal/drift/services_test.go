package drift

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/distro"
)

// A speaker is a node that gives the same output for every command.
type speaker string

func (s speaker) Run(_ context.Context, c host.Command) error {
	_, err := c.Stdout.Write([]byte(s))
	return err
}
func (speaker) Put(context.Context, ...host.File) error                { return nil }
func (speaker) Dial(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
func says(blocks ...string) speaker {
	return speaker(strings.Join(blocks, "\n\n") + "\n")
}
func lines(pairs ...string) string { return strings.Join(pairs, "\n") }
func block(active, sub, file string, more ...string) string {
	return lines(append([]string{"LoadState=loaded", "ActiveState=" + active, "SubState=" + sub, "UnitFileState=" + file,
		"Type=simple", "ConditionTimestampMonotonic=7", "ConditionResult=yes"}, more...)...)
}

// TestServices checks the drift by systemd's report on each unit. A unit that has finished, or has
// nothing to do, is no drift.
//
// Promise (What others print and answer): The search for drift accepts only known words from a
// node, follows no link out, and reads and reports a bounded amount; nothing is restored onto a
// mount of the node's. With drift.TestServicesHostile, drift.TestPrograms, drift.TestProgramsMany,
// drift.TestRestore, tree.TestAlone.
func TestServices(t *testing.T) {
	for _, c := range []struct {
		name, says string
		how        observe.DriftState
		found      string
	}{
		{"running", block("active", "running", "enabled", "Result=success"), "", ""},
		{"without a section to install", block("active", "running", "static"), "", ""},
		{"starting", block("activating", "start", "enabled"), "", ""},
		{"stopped", block("inactive", "dead", "enabled", "Result=success"), observe.NotRunning, "stopped"},
		{"about to start", block("inactive", "dead", "enabled", "ConditionTimestampMonotonic=0", "ConditionResult=no",
			"Job=35"), "", ""},
		{"about to start, and disabled", block("inactive", "dead", "disabled", "Job=35"), observe.NotEnabled, "disabled"},
		{"never started", block("inactive", "dead", "enabled", "ConditionTimestampMonotonic=0", "ConditionResult=no"),
			observe.NotRunning, "stopped"},
		{"failed", block("failed", "failed", "enabled", "Result=exit-code"), observe.NotRunning, "failed (exit-code)"},
		{"given up", block("failed", "failed", "enabled", "Result=start-limit-hit"), observe.NotRunning,
			"failed (start-limit-hit)"},
		{"failing repeatedly", block("activating", "auto-restart", "enabled", "Result=signal"), observe.NotRunning,
			"failing repeatedly (signal)"},
		{"disabled", block("active", "running", "disabled"), observe.NotEnabled, "disabled"},
		{"masked", block("active", "running", "masked"), observe.NotRunning, "masked"},
		{"not there", lines("LoadState=not-found", "ActiveState=inactive", "SubState=dead", "UnitFileState="), observe.Gone,
			"unknown to systemd"},
		{"not readable", lines("LoadState=bad-setting", "ActiveState=inactive", "SubState=dead", "UnitFileState="),
			observe.NotRunning, "not readable by systemd"},
		{"once, and done", block("inactive", "dead", "enabled", "Type=oneshot", "Result=success", "RemainAfterExit=no"), "",
			""},
		{"once, and to remain", block("inactive", "dead", "enabled", "Type=oneshot", "Result=success",
			"RemainAfterExit=yes"), observe.NotRunning, "stopped"},
		{"conditions do not hold", block("inactive", "dead", "enabled", "ConditionResult=no"), "", ""},
		{"words of its own", block("failed", "failed", "enabled", "Result=\x1b[2J evil"), observe.NotRunning, "failed"},
		{"states of its own", block("\x1b]0;evil\x07", "evil", "evil"), "", ""},
	} {
		got, err := Services(t.Context(), "web", says(block("active", "running", "enabled"), c.says),
			distro.Debian.Services, []Unit{{"other.service", "web"}, {"web.service", "web"}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.how == "" {
			if len(got) != 0 {
				t.Errorf("%s: %v", c.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].How != c.how || got[0].Found != c.found || got[0].Subject != "web.service" ||
			got[0].Role != "web" || got[0].Node != "web" || got[0].Kind != observe.DriftService {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestServicesHostile checks that wrong output of a node is an error, and that its length is
// limited.
func TestServicesHostile(t *testing.T) {
	units := []Unit{{"a.service", "web"}, {"b.service", "web"}}
	for name, in := range map[string]speaker{
		"nothing": "", "one of two": says(block("active", "running", "enabled")), "no properties": says("evil", "evil=1"),
		"three of two": says(block("active", "running", "enabled"), block("active", "running", "enabled"),
			block("active", "running", "enabled")),
		"no end": speaker(strings.Repeat("ActiveState=active\n", 1<<16)),
	} {
		if got, err := Services(t.Context(), "web", in, distro.Debian.Services, units); err == nil {
			t.Errorf("%s: %v", name, got)
		} else if len(fmt.Sprint(err)) > 500 {
			t.Errorf("%s: %d bytes are told", name, len(fmt.Sprint(err)))
		}
	}
}
