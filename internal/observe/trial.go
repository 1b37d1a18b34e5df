package observe

import "time"

// A Trial ends with a confirmation, or with the return to the former release.
type Trial struct {
	Release int            `json:"release"`
	Back    map[string]int `json:"back"`    // node -> release
	Within  time.Duration  `json:"within"`  // how long it lasts, from when the switch is on record
	ByHand  bool           `json:"by_hand"` // health checks that hold for all of the time are not enough
	Who     string         `json:"who"`

	Failed string `json:"failed,omitempty"` // a check of it, on this host of several: it is not to be confirmed

	// Begin sets these.
	Until time.Time     `json:"until,omitzero"` // for people, and for whoever finds it after a reboot
	Boot  string        `json:"boot,omitempty"`
	Ends  time.Duration `json:"ends,omitempty"` // since that boot
}

// A Moment is a time on a host: by the calendar, which may be set, and since its boot, which only goes on.
type Moment struct {
	Calendar time.Time
	Boot     string // by which one boot is told from another
	Since    time.Duration
}

// Begin lets the time of a trial begin, or what is left of it.
func (t *Trial) Begin(now Moment, left time.Duration) {
	t.Until, t.Boot, t.Ends = now.Calendar.Add(left).UTC(), now.Boot, now.Since+left
}

// Left tells how much of its time is left. Whoever sets the host's clock makes it neither longer
// nor shorter. After a reboot there is nothing but the calendar to go by; it may have been set,
// too, but never makes more of the time than there was.
func (t *Trial) Left(now Moment) time.Duration {
	if t.Boot == now.Boot && t.Boot != "" {
		return max(0, t.Ends-now.Since)
	}
	return max(0, min(t.Within, t.Until.Sub(now.Calendar)))
}
