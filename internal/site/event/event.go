// Package event has the events of a site of which hooks are notified.
package event

// The events.
const (
	TrialEnded   = "trial-ended"
	SwitchFailed = "switch-failed"
	MirrorFailed = "mirror-failed"
	BackupDone   = "backup-done"

	// These are sent once when something becomes wrong, and once when it is right again.

	BackupFailed   = "backup-failed"
	SnapshotFailed = "snapshot-failed"
	NodeUnhealthy  = "node-unhealthy"
	HostSilent     = "host-silent"
	DiskFull       = "disk-full"
)

// All lists all events.
var All = []string{TrialEnded, SwitchFailed, MirrorFailed, BackupDone, BackupFailed, SnapshotFailed, NodeUnhealthy,
	HostSilent, DiskFull}

// Watched are the events that are noticed only if the hosts watch.
var Watched = []string{NodeUnhealthy, HostSilent, DiskFull}

// Alerting are the events of which [alert] is notified unless it says which.
var Alerting = []string{BackupFailed, SnapshotFailed, NodeUnhealthy, HostSilent, DiskFull}
