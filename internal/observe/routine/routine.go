// Package routine has what hosts record of what they do for a whole site at intervals.
package routine

import "time"

// Routines are what hosts do for a whole site at intervals.
const (
	Backup   = "backup"
	Snapshot = "snapshot"
	Watch    = "watch"
)

// A Record is how something went that is done for a whole site at intervals.
type Record struct {
	Begun    time.Time `json:"begun,omitzero"`     // when the last attempt began
	Host     string    `json:"host,omitempty"`     // the host that made it
	Done     time.Time `json:"done,omitzero"`      // when the last attempt began that succeeded
	Made     string    `json:"made,omitempty"`     // what that has made, such as the name of a backup
	Failures int       `json:"failures,omitempty"` // attempts that have failed since
	Why      string    `json:"why,omitempty"`      // why the last one of these failed
}

// Ended returns the record after an attempt that began at r.Begun and made something, or failed.
func (r Record) Ended(made string, err error) Record {
	if err != nil {
		r.Failures, r.Why = r.Failures+1, err.Error()
		return r
	}
	r.Done, r.Made, r.Failures, r.Why = r.Begun, made, 0, ""
	return r
}
