package lab

import (
	"context"
	"errors"
	"io"
	"runtime"

	"orrery/internal/apply/remote"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/place"
	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
)

// A Runner runs experiments on this machine for a user of another machine, as if they had been
// started here.
type Runner struct{ Session *control.Session }

// Measure runs one experiment. The bundle also stays on this machine, so that an interrupted run
// can be resumed from it.
func (b Runner) Measure(ctx context.Context, x remote.Experiment, tell func(string), to io.Writer) error {
	e, err := experiment.Parse(x.Name+experiment.Suffix, x.Text, host.OnlineCPUs())
	if err != nil {
		return err
	}
	if e, err = e.WithTests(x.Only); err != nil {
		return err
	}
	t := eventSender{tell}
	c := *b.Session
	c.Confirmer, c.Watcher = control.AssumeYes{}, stepReporter{t.line}
	c.Command = "orrery lab run --host, requested by " + problem.Truncate(sanitize.Line(x.By), 100)
	// A disconnect of the requesting host ends the experiment like Ctrl-C.
	ends, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, end)()
	o := Options{Experiment: e, Goal: Goal{Keep: x.Rounds, Until: x.Until, Budget: x.Budget}, Fresh: x.Fresh,
		Orrery: c.Version}
	if content := x.Programs[place.Micro]; content != nil && x.Arch == runtime.GOARCH {
		o.Programs = map[string][]byte{place.Micro: content}
	}
	made, err := Run(ends, &c, t, o)
	if made == nil {
		return err
	}
	return errors.Join(err, bundle.Pack(made.Dir, to))
}
