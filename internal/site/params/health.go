package params

import (
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// Health returns the health checks of a role on a node, with the values of its parameters in http and tcp.
func Health(s *site.Site, n *site.Node, r *site.Role) []site.HealthCheck {
	if !slices.ContainsFunc(r.Health, HasParams) {
		return r.Health
	}
	values := Of(s, n, r)
	value := func(name string) (string, *problem.Problem) { return text(values[name]), nil }
	checks := slices.Clone(r.Health)
	for i := range checks {
		h := &checks[i]
		if filled, mistake := Expand(h.HTTP, value); mistake == nil {
			h.HTTP = filled
		}
		if filled, mistake := Expand(h.TCPParam, value); mistake == nil && filled != "" {
			if port, err := strconv.Atoi(filled); err == nil {
				h.TCP, h.TCPParam = port, ""
			}
		}
	}
	return checks
}

// HasParams reports whether a health check contains parameters.
func HasParams(h site.HealthCheck) bool { return h.TCPParam != "" || strings.Contains(h.HTTP, "{{") }

// Expand replaces each {{.Param.NAME}} in a text by the value of the parameter. Nothing else may stand between
// braces.
func Expand(in string, value func(name string) (string, *problem.Problem)) (string, *problem.Problem) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(in, "{{")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		inside, after, closed := strings.Cut(rest, "}}")
		name, isParam := strings.CutPrefix(strings.TrimSpace(inside), ".Param.")
		if !closed || !isParam {
			return "", problem.New(problem.Mistake, "only parameters may stand between {{ and }}").
				Try("write {{.Param.NAME}}")
		}
		filled, mistake := value(name)
		if mistake != nil {
			return "", mistake
		}
		b.WriteString(filled)
		in = after
	}
}
