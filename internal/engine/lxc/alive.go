package lxc

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
)

// console returns the path of what the node has printed on its console since its last start. The
// node's root controls the contents.
func (c container) console() string { return c.File("console.log") }

// recordConsole makes LXC store the console output for lastLines. LXC empties the file whenever it
// is full.
func (s start) recordConsole(set func(key, format string, args ...any)) error {
	if err := os.Remove(s.console()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	set("lxc.console.logfile", "%s", s.console())
	set("lxc.console.size", "64KB")
	return nil
}

// checkAlive returns a problem if the init of a started node has already ended. LXC reports success
// as soon as init could be executed.
func (s start) checkAlive(ctx context.Context) error {
	if s.survives(ctx) || ctx.Err() != nil {
		return ctx.Err()
	}
	err := error(problem.New(problem.Failed, "node %s: its init ended before the node was up", s.r.Name).At(s.log()).
		Because(errors.New(s.lastLines())).
		Try("check the output of init; orrery down %s and orrery up recreate the node", s.r.Name))
	if killed := s.kill(ctx); killed != nil {
		return errors.Join(err, killed)
	}
	return errors.Join(err, s.links.returnInterfaces(ctx))
}

// survives reports whether the node's init runs. It waits if init is missing but the monitor runs,
// because the node may be rebooting or the monitor about to end.
func (p processes) survives(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	for !p.running() {
		if p.monitor() == 0 || host.Sleep(ctx, 5*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

// lastLines returns why init may have ended: errors from LXC's log and the last lines of the
// console.
func (s start) lastLines() string {
	var all []string
	if logged := s.errorsInLog(); logged != "" {
		all = append(all, sanitize.Text(logged))
	}
	if printed, err := os.ReadFile(s.console()); err == nil && len(printed) > 0 {
		all = append(all, "the last lines of its console:\n"+sanitize.LastLines(printed))
	}
	if len(all) == 0 {
		return "it printed nothing on its console"
	}
	return strings.Join(all, "\n")
}
