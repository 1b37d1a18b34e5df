package twin

import (
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Record says, beside the state of a twin, what it is a twin of.
type Record struct {
	Site    string  `json:"site"`
	Dir     string  `json:"dir"` // site directory of which it is made
	Options Options `json:"options"`
	Volumes string  `json:"volumes"` // what its volumes began with: "empty", "snapshot" or a script
	Filled  bool    `json:"filled"`  // they have got it
	// of the site, by name, if it is on others than this machine: each of them keeps this
	Hosts   []string  `json:"hosts,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

// Key is what the twin is known by on the host.
func (r *Record) Key() string { return r.Site + "." + r.Options.Name }

// Check refuses a record that no program of ours has written. It may have come from another host.
func (r *Record) Check(of *site.Site) error {
	if r.Site != of.Name {
		return problem.New(problem.Surprise, "the record of twin %q is of site %q", r.Options.Name, r.Site)
	}
	return r.Options.check(of)
}
