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

// askEvery is how often it is asked, while a health check fails, whether systemd has given up.
const askEvery = time.Second

// A givenUp is a health check that need not be tried any longer: systemd does not start the service again.
type givenUp struct {
	unit  string
	err   error  // of the last try
	words string // what the service said last
}

func (g *givenUp) Error() string {
	if g.words == "" {
		return g.err.Error()
	}
	return g.err.Error() + "\n" + g.words
}

func (g *givenUp) Unwrap() error { return g.err }

// behind returns the services that are behind the health checks of a role on a node: its own or, if
// it has none, those of the roles that it needs.
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

// failed returns the first of some services that will not be started again.
func failed(ctx context.Context, in host.Runner, sv *distro.Services, units []string) string {
	if len(units) == 0 {
		return ""
	}
	// its status says the same
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

// lastWords returns the last lines that a service has printed, and what is said of its end.
func lastWords(ctx context.Context, in host.Runner, sv *distro.Services, unit string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// without it, it is only known that it failed
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
