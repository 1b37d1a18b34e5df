// Package event has the events of a site of which hooks are notified.
package event

// The events.
const (
	TrialEnded   = "trial-ended"
	SwitchFailed = "switch-failed"
	MirrorFailed = "mirror-failed"
	BackupDone   = "backup-done"
)

// All lists all events.
var All = []string{TrialEnded, SwitchFailed, MirrorFailed, BackupDone}
