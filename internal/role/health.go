package role

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// Check runs the health checks of all roles of a node until each has succeeded once. Each check has
// its own time limit.
func Check(ctx context.Context, in host.Runner, n *spec.RoleActions, say func(string)) error {
	for i := range n.Roles {
		r := &n.Roles[i]
		env := bootEnv(r)
		for k := range r.Health {
			h := &r.Health[k]
			say("role " + r.Name + ": " + Describe(h))
			if err := waitHealthy(ctx, in, n, h, env, servicesChecked(n, r)); err != nil {
				how := "within " + h.Within.String()
				var up *abandonedError
				if errors.As(err, &up) {
					how = "and " + up.unit + " has failed"
				}
				return problem.New(problem.Failed, "node %s is not healthy: role %s: %s %s", n.Node, r.Name, Describe(h), how).
					At(fmt.Sprintf("%s/role.toml:%d", r.Dir, h.Line)).Because(err).
					Try("orrery logs %s shows the output of its services", n.Node)
			}
		}
	}
	return nil
}

// A HealthError is a failing health check.
type HealthError struct {
	Role  string
	Check string // short description
	Err   error
}

// Error returns the role, the check and its error.
func (s *HealthError) Error() string { return fmt.Sprintf("role %s: %s: %v", s.Role, s.Check, s.Err) }

// Unwrap returns the error of the health check.
func (s *HealthError) Unwrap() error { return s.Err }

// Probe runs each health check of a node once. It returns a *Sickness for the first one that fails.
func Probe(ctx context.Context, in host.Runner, n *spec.RoleActions) error {
	for i := range n.Roles {
		r := &n.Roles[i]
		env := bootEnv(r)
		for k := range r.Health {
			if err := runCheck(ctx, in, n, &r.Health[k], env); err != nil {
				return &HealthError{r.Name, Describe(&r.Health[k]), err}
			}
		}
	}
	return nil
}

// MaxProbeTime returns the maximum duration of Probe for a node.
func MaxProbeTime(n *spec.RoleActions) time.Duration {
	var all time.Duration
	for i := range n.Roles {
		r := &n.Roles[i]
		for k := range r.Health {
			all += r.Health[k].Timeout
		}
	}
	return all
}

// Describe returns a short description of a health check.
func Describe(h *site.HealthCheck) string { return h.Kind() + " " + h.Subject(h.Kind()) }

const minRetryPause = 20 * time.Millisecond

// waitHealthy repeats a check until it succeeds, its time is over, or systemd has given up a service that
// it depends on.
func waitHealthy(whole context.Context, in host.Runner, n *spec.RoleActions, h *site.HealthCheck, env,
	units []string) error {
	ctx, cancel := context.WithTimeout(whole, h.Within)
	defer cancel()
	sv := distro.OrDefault(n.Distribution).Services
	var last error
	asked := time.Now()
	// A node that has just started is asked at short intervals, which increase.
	for pause := minRetryPause; ; pause = min(2*pause, h.Interval) {
		err := runCheck(ctx, in, n, h, env)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			// If the deadline interrupted this attempt, its error is less useful than the previous
			// one.
			last = err
		}
		if time.Since(asked) >= giveUpCheckInterval && ctx.Err() == nil {
			if unit := abandonedService(ctx, in, sv, units); unit != "" {
				return &abandonedError{unit, last, lastOutput(whole, in, sv, unit)}
			}
			asked = time.Now()
		}
		if host.Sleep(ctx, min(pause, h.Interval)) != nil {
			return last
		}
	}
}

// runCheck makes one attempt of a check.
func runCheck(ctx context.Context, in host.Runner, n *spec.RoleActions, h *site.HealthCheck, env []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, fmt.Errorf("no answer within %s", h.Timeout))
	defer cancel()
	switch h.Kind() {
	case "tcp":
		return connect(ctx, in, h.TCP)
	case "http":
		return get(ctx, in, n, h.HTTP)
	case "mount":
		return checkMount(ctx, in, h.Mount)
	case "unit":
		return checkUnit(ctx, in, distro.OrDefault(n.Distribution).Services, h.Unit)
	case "dns":
		return lookUp(ctx, in, h)
	case "ntp":
		return askTime(ctx, in, h)
	}
	return in.Run(ctx, host.Command{Args: h.Command, Env: env})
}

// connect makes a connection to a port of the node.
func connect(ctx context.Context, in host.Runner, port int) error {
	conn, err := in.Dial(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return conn.Close()
}
