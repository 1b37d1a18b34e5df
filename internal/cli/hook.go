package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/hook"
	"orrery/internal/host/later"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// hookVerb tells the hooks of a site what waits to be told. It is begun by whoever has something to tell, who does not wait for it.
func (a *app) hookVerb() *cobra.Command {
	return &cobra.Command{
		Use: "hook SITE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Tell the hooks of a site what waits to be told",
		RunE: func(c *cobra.Command, args []string) error {
			if err := needRoot(); err != nil {
				return err
			}
			return hook.Deliver(c.Context(), a.dirs, args[0])
		},
	}
}

// tell lets the hooks of a site know of something. What goes wrong with that is said, and changes nothing else.
func (a *app) tell(s *site.Site, e hook.Event) {
	e.Who, e.Time = who(), time.Now()
	some, err := hook.Post(a.dirs, s, e)
	if err == nil && some {
		err = later.Run(later.Call{Name: "hooks-" + s.Key(), Args: []string{"hook", s.Key()}}, a.dirs)
	}
	if err == nil {
		return
	}
	err = problem.New(problem.Failed, "the hooks of site %s are not told that: %s", s.Name, e.Event).Because(err)
	printError(a.err, err)
	if err := a.note(s, "hooks: "+e.Event, err.Error()); err != nil {
		printError(a.err, err)
	}
}

// tellTrialEnd lets the hooks know how a trial has ended.
func (a *app) tellTrialEnd(s *site.Site, release int, result, why string) {
	a.tell(s, hook.Event{Event: site.TrialEnded, Result: result, Why: why, Release: &release})
}

// tellFailedSwitch lets the hooks know of a switch that was tried and failed. One that was refused has changed nothing.
func (t *turn) tellFailedSwitch(err error) {
	result, tried := map[int]string{int(problem.Reverted): observe.Reverted, int(problem.HalfWay): "half-way"}[problem.Exit(err)]
	if !tried {
		return
	}
	e := hook.Event{Event: site.SwitchFailed, Result: result, Why: t.host.Keys.Redact(fmt.Sprint(err))}
	for _, number := range t.to {
		e.Release = &number
		break
	}
	t.tell(t.site, e)
}
