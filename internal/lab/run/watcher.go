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

// A Watcher watches the host while trials run and finds out what makes them suspect.
type Watcher struct {
	facts    facts.Facts
	baseline probe.CPU
	probe    *probe.Probe
	settings map[string]experiment.Setting

	mutex   sync.Mutex
	seconds []probe.Second // of the current trial
}

// How long the host is watched before the first round and briefly before each round, and how long
// to wait for nodes that are starting.
const (
	idleDuration  = 2 * time.Second
	briefDuration = 500 * time.Millisecond
	startTimeout  = 10 * time.Second
)

// OpenWatcher starts to watch. It stores every second in the bundle.
func OpenWatcher(ctx context.Context, e *experiment.Experiment, g *setting.Places, f facts.Facts,
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
			_ = keep(s) // ignore the error: if the disk is full, the next trial reports it
			watcher.mutex.Lock()
			defer watcher.mutex.Unlock()
			watcher.seconds = append(watcher.seconds, s)
		}})
	return watcher, err
}

// Begin measures the idle host before the first round, after nodes have come to rest and other
// processes have been waited for.
func (w *Watcher) Begin(ctx context.Context) error {
	seen, err := probe.Baseline(ctx, idleDuration)
	w.baseline = idleLoad(seen)
	return err
}

// idleLoad returns the load of the idle host itself. If the host is busy before the first round, that
// says nothing about the rounds, each of which is watched. The load of others then must neither
// count against all trials, nor be mistaken for the host's own load and subtracted.
func idleLoad(seen probe.CPU) probe.CPU {
	if suspect.Busy(seen) {
		return probe.CPU{}
	}
	return seen
}

// Close stops watching.
func (w *Watcher) Close() { w.probe.Stop() }

// Cost returns the cost of watching.
func (w *Watcher) Cost() probe.Cost { return w.probe.Cost() }

// Watch starts to watch a trial of a unit in places of one setting. The returned function ends that
// and returns why the trial is suspect.
func (w *Watcher) Watch(u *Unit, near []*place.Place) func(test.Moved) []test.Label {
	w.probe.Cut()
	w.takeSeconds()
	return func(moved test.Moved) []test.Label {
		w.probe.Cut()
		links := links(near)
		during := suspect.During(w.takeSeconds(),
			suspect.Context{Kind: u.Kind, Baseline: w.baseline, Links: links, Moved: moved})
		return slices.Concat(suspect.Before(w.facts, w.subject(u, near)), during)
	}
}

// BusyReason watches the host briefly between trials and returns what uses it, or "" if it is idle.
func (w *Watcher) BusyReason(ctx context.Context) (string, error) {
	seconds, err := w.watch(ctx, briefDuration)
	return suspect.BusyReason(seconds), err
}

// WaitUntilIdle waits until newly created nodes have come to rest.
func (w *Watcher) WaitUntilIdle(ctx context.Context) error {
	for end := time.Now().Add(startTimeout); time.Now().Before(end); {
		seconds, err := w.watch(ctx, briefDuration)
		if err != nil || suspect.NodesIdle(seconds) {
			return err
		}
	}
	return nil
}

func (w *Watcher) watch(ctx context.Context, d time.Duration) ([]probe.Second, error) {
	w.probe.Cut()
	w.takeSeconds()
	if err := host.Sleep(ctx, d); err != nil {
		return nil, err
	}
	w.probe.Cut()
	return w.takeSeconds(), nil
}

// links returns the interfaces of the host that carry the traffic of the places.
func links(near []*place.Place) []string {
	var all []string
	for _, p := range near {
		all = append(all, p.HostLinks...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (w *Watcher) takeSeconds() []probe.Second {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	all := w.seconds
	w.seconds = nil
	return all
}

// subject returns which facts matter to a unit in a setting.
func (w *Watcher) subject(u *Unit, near []*place.Place) suspect.Subject {
	s := suspect.Subject{Kind: u.Kind, Copies: u.Copies, Far: u.Needs().Far, Links: links(near)}
	of, made := w.settings[near[0].Name]
	s.Bridge = !made || of.Bridged() // the bare host uses the bridge too
	s.Cached = of.CacheReason()
	s.Aside = made && of.Network != experiment.Routed
	if of.Limits.Pin != "" {
		for range near {
			s.Pins = append(s.Pins, facts.Numbers(of.Limits.Pin))
		}
	}
	return s
}
