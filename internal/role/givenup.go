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

// askEvery is the interval for asking systemd whether it has given up, while a health check fails.
const askEvery = time.Second

// A givenUp is the error of a health check that is not retried, because systemd does not restart
// the service again.
type givenUp struct {
	unit  string
	err   error  // of the last attempt
	words string // last output of the service
}

func (g *givenUp) Error() string {
	if g.words == "" {
		return g.err.Error()
	}
	return g.err.Error() + "\n" + g.words
}

func (g *givenUp) Unwrap() error { return g.err }

// behind returns the services that a role's health checks depend on. They are its own services or,
// if it has none, those of the roles that it needs.
func behind(n *spec.Duties, r *spec.Duty) []string {
	own := slices.Concat(r.Services, r.Active)
	if len(own) > 0 {
		return own
	}
	for i := range n.Roles {
		if other := &n.Roles[i]; slices.Contains(r.NeedsRoles, other.Name) {
			own = append(own, behind(n, other)...)
		}
	}
	return own
}

// failed returns the first of some services that will not be restarted, or "".
func failed(ctx context.Context, in host.Runner, sv *distro.Services, units []string) string {
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

// lastWords returns the last output lines of a service, including the messages about its end.
func lastWords(ctx context.Context, in host.Runner, sv *distro.Services, unit string) string {
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
