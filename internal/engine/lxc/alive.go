package lxc

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

// console is what the node printed on its console since it was last started. The node's root decides what is in it.
func (c container) console() string { return c.File("console.log") }

// recordConsole has LXC keep what the node prints, for startProblem. LXC empties the file whenever it is full.
func (c container) recordConsole(set func(key, format string, args ...any)) error {
	if err := os.Remove(c.console()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	set("lxc.console.logfile", "%s", c.console())
	set("lxc.console.size", "64KB")
	return nil
}

// checkAlive returns a problem if the init of a node that LXC has started has ended. LXC itself is content with an init
// that could be executed.
func (e *Engine) checkAlive(ctx context.Context, c container, r *nodedir.Record) error {
	if c.survives(ctx) || ctx.Err() != nil {
		return ctx.Err()
	}
	err := error(problem.New(problem.Failed, "node %s: its init ended before the node was up", r.Name).At(c.log()).
		Because(errors.New(c.lastWords())).Try("see what init printed; orrery down %s and orrery up make the node anew", r.Name))
	if killed := c.kill(ctx); killed != nil {
		return errors.Join(err, killed)
	}
	return errors.Join(err, c.links(r).giveBack(ctx))
}

// survives reports whether the node's init runs. A node that reboots has none for a moment, nor has one whose monitor is
// about to end.
func (p processes) survives(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !p.running() {
		if p.monitor() == 0 || host.Pause(ctx, 5*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

// lastWords returns what can be told of an init that has ended: errors that LXC logged and the last lines of the console.
func (c container) lastWords() string {
	var all []string
	if logged := c.why(); logged != "" {
		all = append(all, visible.Text(logged))
	}
	if printed, err := os.ReadFile(c.console()); err == nil && len(printed) > 0 {
		all = append(all, "the last lines of its console:\n"+visible.LastLines(printed))
	}
	if len(all) == 0 {
		return "it printed nothing on its console"
	}
	return strings.Join(all, "\n")
}
