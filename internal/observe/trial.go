package observe

import "time"

// A Trial ends with a confirmation, or with the return to the former release.
type Trial struct {
	Release int            `json:"release"`
	Back    map[string]int `json:"back"`    // node -> release
	Within  time.Duration  `json:"within"`  // duration from the time when the switch is recorded
	ByHand  bool           `json:"by_hand"` // passing health checks for the whole duration are not enough
	Who     string         `json:"who"`

	// failed check on this host, one of several; the trial must not be confirmed
	Failed string `json:"failed,omitempty"`

	// Begin sets these.
	Until time.Time     `json:"until,omitzero"` // for display, and as the limit after a reboot
	Boot  string        `json:"boot,omitempty"`
	Ends  time.Duration `json:"ends,omitempty"` // time since that boot
}

// A Timestamp is a time on a host. It has the calendar time, which can be set, and the time since
// boot, which only increases.
type Timestamp struct {
	Calendar time.Time
	Boot     string // id of the boot
	Since    time.Duration
}

// SetDeadline starts the remaining time of a trial.
func (t *Trial) SetDeadline(now Timestamp, left time.Duration) {
	t.Until, t.Boot, t.Ends = now.Calendar.Add(left).UTC(), now.Boot, now.Since+left
}

// Remaining returns the remaining time of a trial. Setting the host's clock has no effect on it. After a
// reboot only the calendar is available. It may also have been set, but the remaining time never
// exceeds the trial's duration.
func (t *Trial) Remaining(now Timestamp) time.Duration {
	if t.Boot == now.Boot && t.Boot != "" {
		return max(0, t.Ends-now.Since)
	}
	return max(0, min(t.Within, t.Until.Sub(now.Calendar)))
}
