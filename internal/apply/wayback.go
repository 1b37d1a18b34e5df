package apply

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/site"
)

// A WayBack is how a host returns by itself to what was live before a trial, when nobody has confirmed it in time: the steps on this host, each with all that doing it takes. It was planned
// with all hosts in view; the host needs nobody for it, and no site directory.
type WayBack struct {
	Host   string            `json:"host"` // what the site calls the host
	Intent observe.Switch    `json:"intent"`
	Steps  []json.RawMessage `json:"steps"`
	Checks []Want            `json:"checks,omitempty"` // of what is on trial here
	Hooks  []site.Hook       `json:"hooks,omitempty"`  // who is told on this host that it has gone back, if nodes of it have
}

// WayBackPath is where a host keeps that of a site.
func WayBackPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Site(key), "wayback.json")
}

// WatchName is what the process is known by that watches over a trial of a site.
func WatchName(key string) string { return "trial-" + key }

// StepsOn gives the steps of a plan that are on one host.
func StepsOn(p *plan.Plan, name string) []*plan.Step {
	return pack.Alone(slices.DeleteFunc(slices.Clone(p.Steps), func(s *plan.Step) bool { return s.Host != name }))
}

// Decoded gives steps that plan.Encode has encoded.
func Decoded(steps []json.RawMessage) (all []*plan.Step, err error) {
	for _, text := range steps {
		s, err := plan.Decode(text)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
