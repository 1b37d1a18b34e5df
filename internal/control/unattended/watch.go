package unattended

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/journal/hook"
	"orrery/internal/problem"
	"orrery/internal/site/event"
)

// A Finding is something that is wrong with a site.
type Finding struct {
	Event   string // one of event.Watched
	Subject string // what is wrong, such as "node web1"
	Node    string // its name if it is a node, or ""
	Why     string
	// Doubtful findings do not raise an alert, but keep one that was raised: it is unknown whether it
	// is right again.
	Doubtful bool
}

// results are the words for what is wrong.
var results = map[string]string{event.NodeUnhealthy: "unhealthy", event.HostSilent: "silent", event.DiskFull: "full"}

// firmLooks is how many looks in a row must find something before hooks are notified. A service that
// restarts, or a lost packet, is no reason to wake anyone.
var firmLooks = map[string]int{event.NodeUnhealthy: 2, event.HostSilent: 2, event.DiskFull: 1}

// An alert is something that was wrong at the last look.
type alert struct {
	Event   string    `json:"event"`
	Subject string    `json:"subject"`
	Node    string    `json:"node,omitempty"`
	Since   time.Time `json:"since"`
	Looks   int       `json:"looks"`            // that have found it in a row
	Raised  bool      `json:"raised,omitempty"` // hooks were notified of it
}

// watch looks at the site, and notifies its hooks of what has changed since the last look. It does
// nothing while the site is being changed.
func (h *Host) watch(ctx context.Context) error {
	if h.isChanging() {
		return nil
	}
	found, err := h.Work.Look(ctx)
	if h.isChanging() {
		return nil
	}
	h.recordLook(ctx, err)
	if err != nil {
		return err
	}
	path := apply.AlertsPath(h.Dirs, h.Key)
	before, err := host.ReadJSON[map[string]alert](path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.Say(problem.New(problem.Failed, "the alerts of site %s cannot be read; all conditions are reported again", h.Key).
			At(path).
			Because(err))
	}
	now, err := h.compare(ctx, before, found)
	if maps.Equal(before, now) {
		return err
	}
	return errors.Join(err, host.WriteJSON(path, 0o600, now))
}

// compare returns what is wrong now, after notifying the hooks of changes. What they could not be
// notified of is tried again at the next look.
func (h *Host) compare(ctx context.Context, before map[string]alert, found []Finding) (now map[string]alert,
	err error) {
	now = map[string]alert{}
	for _, f := range found {
		key := f.Event + " " + f.Subject
		a, known := before[key]
		switch {
		case !known && f.Doubtful:
			continue
		case !known:
			a = alert{Event: f.Event, Subject: f.Subject, Node: f.Node, Since: time.Now().UTC().Truncate(time.Second)}
		}
		if !f.Doubtful {
			a.Looks = min(a.Looks+1, firmLooks[f.Event])
		}
		if !a.Raised && !f.Doubtful && a.Looks >= firmLooks[f.Event] {
			wrong := h.notify(ctx, hook.Event{Event: f.Event, Result: results[f.Event], Why: f.Why, Node: f.Node,
				Subject: f.Subject})
			a.Raised, err = wrong == nil, errors.Join(err, wrong)
			h.Tell("%s is %s: %s", f.Subject, results[f.Event], f.Why)
		}
		now[key] = a
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		a := before[key]
		if _, still := now[key]; still || !a.Raised {
			continue
		}
		wrong := h.notify(ctx, hook.Event{Event: a.Event, Result: recovered, Node: a.Node, Subject: a.Subject})
		if wrong != nil {
			now[key], err = a, errors.Join(err, wrong)
			continue
		}
		h.Tell("%s: recovered", a.Subject)
	}
	return now, err
}
