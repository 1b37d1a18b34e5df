package apply

import (
	"encoding/json"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
)

// A WayBack is how a host returns by itself to what was live before a trial, when nobody has confirmed it in time: the steps on this host, each with all that doing it takes. It was planned
// with all hosts in view; the host needs nobody for it, and no site directory.
type WayBack struct {
	Host   string            `json:"host"` // what the site calls the host
	Intent observe.Switch    `json:"intent"`
	Steps  []json.RawMessage `json:"steps"`
	Checks []Want            `json:"checks,omitempty"` // of what is on trial here
}

// WayBackPath is where a host keeps that of a site.
func WayBackPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Site(key), "wayback.json")
}

// WatchName is what the process is known by that watches over a trial of a site.
func WatchName(key string) string { return "trial-" + key }

// StepsOn gives the steps of a plan that are on one host. What they need on others is taken for done.
func StepsOn(p *plan.Plan, name string) []*plan.Step {
	numbers := map[int]int{}
	var all []*plan.Step
	for _, s := range p.Steps {
		if s.Host != name {
			continue
		}
		one := *s
		one.N, one.Needs = len(all), nil
		for _, need := range s.Needs {
			if n, here := numbers[need]; here {
				one.Needs = append(one.Needs, n)
			}
		}
		numbers[s.N] = one.N
		all = append(all, &one)
	}
	return all
}
