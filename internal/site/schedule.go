package site

import "time"

// A Schedule says when something is done for a whole site without anyone asking for it, and how many
// results are kept.
type Schedule struct {
	Every time.Duration `toml:"every" json:"every,omitempty"` // interval, or 0 if it is not repeated
	// At is the host's time of day, such as "03:00", if the interval is a number of days, or "" for
	// any time.
	At     string   `toml:"at" json:"at,omitempty"`
	Before []string `toml:"before" json:"before,omitempty"` // also done before these, of Occasions
	Keep   int      `toml:"keep" json:"keep,omitempty"`     // number of results that are kept, or 0 for all
}

// BeforeSwitch is the occasion of a switch to another release.
const BeforeSwitch = "switch"

// Occasions lists what something can be done before.
var Occasions = []string{BeforeSwitch}

// TimeOfDay is the layout of Schedule.At for package time.
const TimeOfDay = "15:04"

const day = 24 * time.Hour

// Next returns when something is due that was last done at a time, in the time zone of that time. If
// it was never done, Next returns the zero time.
func (s Schedule) Next(last time.Time) time.Time {
	at, err := time.Parse(TimeOfDay, s.At)
	if last.IsZero() || s.At == "" || err != nil {
		if last.IsZero() {
			return last
		}
		return last.Add(s.Every)
	}
	days := int(s.Every / day)
	next := func(after int) time.Time { // time.Date keeps the time of day when clocks change
		return time.Date(last.Year(), last.Month(), last.Day()+after, at.Hour(), at.Minute(), 0, 0, last.Location())
	}
	if next(0).After(last) {
		days--
	}
	return next(days)
}

// WholeDays reports whether the interval is a number of days.
func (s Schedule) WholeDays() bool { return s.Every >= day && s.Every%day == 0 }

// A Backup says where backups of the site go, and when they are taken.
type Backup struct {
	Schedule
	To        string   `toml:"to"`          // directory of the host that takes them, or "" if none are declared
	SecretsTo []string `toml:"secrets_to"`  // public keys of age for which secrets are encrypted
	Layers    bool     `toml:"with_layers"` // include the layers
}

// A Watch says how often hosts look at nodes, other hosts and disks.
type Watch struct {
	Every time.Duration `toml:"every"` // or 0 if they do not
}
