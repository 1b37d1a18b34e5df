package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/facts"
	"orrery/internal/lab/place"
	"orrery/internal/lab/probe"
	"orrery/internal/lab/setting"
	"orrery/internal/lab/suspect"
	"orrery/internal/lab/test"
)

// A Watcher watches the host while trials run, and says what of it makes them suspect.
type Watcher struct {
	facts    facts.Facts
	baseline probe.CPU
	probe    *probe.Probe
	settings map[string]experiment.Setting

	mutex   sync.Mutex
	seconds []probe.Second // of the trial under way
}

// How long the host is watched before the first round, and for a moment before each; and how long
// nodes are waited for that start.
const (
	idleFor  = 2 * time.Second
	moment   = 500 * time.Millisecond
	starting = 10 * time.Second
)

// OpenWatcher begins to watch. Every second is kept in a book.
func OpenWatcher(ctx context.Context, e *experiment.Experiment, g *setting.Ground, f facts.Facts,
	keep func(any) error) (*Watcher, error) {
	watcher := &Watcher{facts: f, settings: map[string]experiment.Setting{}}
	for _, s := range e.Settings {
		watcher.settings[s.Name] = s
	}
	cgroups := map[string]string{}
	for setting, near := range g.Near {
		for _, p := range append([]*place.Place{g.Far[setting]}, near...) {
			if p != nil && p.Cgroup != "" {
				cgroups[p.Node] = p.Cgroup
			}
		}
	}
	var err error
	watcher.probe, err = probe.Start(context.WithoutCancel(ctx),
		probe.Options{Cgroups: cgroups, Deliver: func(s probe.Second) {
			_ = keep(s) // that the disk is full is told by the next trial
			watcher.mutex.Lock()
			defer watcher.mutex.Unlock()
			watcher.seconds = append(watcher.seconds, s)
		}})
	return watcher, err
}

// Begin takes the measure of the host as it is before the first round, when nodes have come to rest
// and others have been waited for.
func (w *Watcher) Begin(ctx context.Context) error {
	seen, err := probe.Baseline(ctx, idleFor)
	w.baseline = own(seen)
	return err
}

// own is what the idle host takes for itself. A busy moment before the first round says nothing of
// the rounds, each of which is watched: what others took then is neither held against all trials,
// nor taken for the host's own and left out of their load.
func own(seen probe.CPU) probe.CPU {
	if suspect.Busy(seen) {
		return probe.CPU{}
	}
	return seen
}

// Close ends the watch.
func (w *Watcher) Close() { w.probe.Stop() }

// Cost is what watching itself has taken.
func (w *Watcher) Cost() probe.Cost { return w.probe.Cost() }

// Look begins to watch a trial of a unit in places of one setting. What it returns ends that, and
// says why the trial is suspect.
func (w *Watcher) Look(u *Unit, near []*place.Place) func(test.Moved) []test.Label {
	w.probe.Cut()
	w.take()
	return func(moved test.Moved) []test.Label {
		w.probe.Cut()
		links := links(near)
		during := suspect.During(w.take(), suspect.Context{Kind: u.Kind, Baseline: w.baseline, Links: links, Moved: moved})
		return slices.Concat(suspect.Before(w.facts, w.subject(u, near)), during)
	}
}

// Restless watches the host for a moment, and says who uses it while no trial is under way; "": nobody.
func (w *Watcher) Restless(ctx context.Context) (string, error) {
	seconds, err := w.watch(ctx, moment)
	return suspect.Restless(seconds), err
}

// Started waits until nodes that were just made have come to rest.
func (w *Watcher) Started(ctx context.Context) error {
	for end := time.Now().Add(starting); time.Now().Before(end); {
		seconds, err := w.watch(ctx, moment)
		if err != nil || suspect.AtRest(seconds) {
			return err
		}
	}
	return nil
}

func (w *Watcher) watch(ctx context.Context, d time.Duration) ([]probe.Second, error) {
	w.probe.Cut()
	w.take()
	if err := host.Pause(ctx, d); err != nil {
		return nil, err
	}
	w.probe.Cut()
	return w.take(), nil
}

// links returns the interfaces of the host through which the traffic of some places goes.
func links(near []*place.Place) []string {
	var all []string
	for _, p := range near {
		all = append(all, p.HostLinks...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (w *Watcher) take() []probe.Second {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	all := w.seconds
	w.seconds = nil
	return all
}

// subject tells what facts matter to a unit in a setting.
func (w *Watcher) subject(u *Unit, near []*place.Place) suspect.Subject {
	s := suspect.Subject{Kind: u.Kind, Copies: u.Copies, Far: u.Needs().Far, Links: links(near)}
	of, made := w.settings[near[0].Name]
	s.Bridge = !made || of.Bridged() // the bare host talks through the bridge, too
	s.Cached = of.Cached()
	s.Aside = made && of.Network != experiment.Routed
	if of.Limits.Pin != "" {
		for range near {
			s.Pins = append(s.Pins, facts.Numbers(of.Limits.Pin))
		}
	}
	return s
}
