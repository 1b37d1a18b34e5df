package twin

import (
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Record describes a twin. It is stored with the twin's state.
type Record struct {
	Site    string  `json:"site"`
	Dir     string  `json:"dir"` // site directory of the original
	Options Options `json:"options"`
	Volumes string  `json:"volumes"` // initial content of its volumes: "empty", "snapshot" or a script
	Filled  bool    `json:"filled"`  // the volumes have their initial content
	// Hosts are the names of the site's hosts if there are others than this machine. Each host
	// stores the record.
	Hosts   []string  `json:"hosts,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

// Key returns the key of the twin on the host.
func (r *Record) Key() string { return r.Site + "." + r.Options.Name }

// Check returns an error if the record is invalid. The record may come from another host.
func (r *Record) Check(of *site.Site) error {
	if r.Site != of.Name {
		return problem.New(problem.Surprise, "the record of twin %q belongs to site %q", r.Options.Name, r.Site)
	}
	return r.Options.check(of)
}
