package role

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/text/sanitize"
)

// giveUpCheckInterval is the interval for asking systemd whether it has given up, while a health check fails.
const giveUpCheckInterval = time.Second

// An abandonedError is the error of a health check that is not retried, because systemd does not restart
// the service again.
type abandonedError struct {
	unit  string
	err   error  // of the last attempt
	words string // last output of the service
}

func (g *abandonedError) Error() string {
	if g.words == "" {
		return g.err.Error()
	}
	return g.err.Error() + "\n" + g.words
}

func (g *abandonedError) Unwrap() error { return g.err }

// servicesChecked returns the services that a role's health checks depend on. They are its own services or,
// if it has none, those of the roles that it needs.
func servicesChecked(n *spec.RoleActions, r *spec.RoleAction) []string {
	own := slices.Concat(r.Services, r.Active)
	if len(own) > 0 {
		return own
	}
	for i := range n.Roles {
		if other := &n.Roles[i]; slices.Contains(r.NeedsRoles, other.Name) {
			own = append(own, servicesChecked(n, other)...)
		}
	}
	return own
}

// abandonedService returns the first of some services that will not be restarted, or "".
func abandonedService(ctx context.Context, in host.Runner, sv *distro.Services, units []string) string {
	if len(units) == 0 {
		return ""
	}
	// ignore the error, because the command's output says the same
	said, _ := host.Output(ctx, in, host.Command{Args: slices.Concat(sv.Failed, units)}, 64*len(units))
	states := strings.Fields(string(said))
	if len(states) != len(units) {
		return ""
	}
	if i := slices.Index(states, sv.GivenUp); i >= 0 {
		return units[i]
	}
	return ""
}

// lastOutput returns the last output lines of a service, including the messages about its end.
func lastOutput(ctx context.Context, in host.Runner, sv *distro.Services, unit string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// ignore the error; the message then only says that the service failed
	said, _ := host.Output(ctx, in, host.Command{Args: sv.LastSaid(unit)}, 256<<10)
	var lines []string
	for line := range bytes.Lines(said) {
		text := sanitize.Line(strings.TrimRight(string(line), "\r\n"))
		if runes := []rune(text); len(runes) > maxAnswerBytes {
			text = string(runes[:maxAnswerBytes]) + "…"
		}
		lines = append(lines, "    "+unit+": "+text)
	}
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
