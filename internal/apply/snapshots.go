package apply

import (
	"context"
	"time"

	"orrery/internal/snapshot"
	"orrery/internal/volume"
)

// A SnapshotHost has the host's parts of the site's snapshots: what its own nodes have written.
type SnapshotHost interface {
	// List returns the stored parts, the oldest first, and the ids of those that are ready and not
	// yet stored.
	List(ctx context.Context) (kept []*snapshot.Snapshot, ready []string, err error)
	// Size returns the size of a part.
	Size(ctx context.Context, id string) (volume.Size, error)
	// Restoring returns the snapshot whose restore was interrupted, or "", and the nodes to
	// restore.
	Restoring(ctx context.Context) (id string, nodes []string, err error)

	// Capture makes a part ready, in step with the other hosts. If it fails, nothing is left of it.
	Capture(ctx context.Context, of SnapshotRequest, with snapshot.Barrier) (*snapshot.Snapshot, error)
	// Keep stores a part that is ready. It leaves an already stored part unchanged.
	Keep(ctx context.Context, id string) error
	// Remove removes a part, stored or ready. It is not an error if there is none.
	Remove(ctx context.Context, id string) error

	// Restore restores stopped nodes from a snapshot. It calls then while the former state is still
	// kept. If then fails, Restore brings the former state back and returns a problem of kind
	// Undone. If ctx ends, the control host has gone: everything stays for the next run to resume.
	Restore(ctx context.Context, id string, nodes []string, then func(RestoreFailures) error) error
}

// A SnapshotRequest says which nodes are in a snapshot.
type SnapshotRequest struct {
	ID     string `json:"id"`
	Nodes  []int  `json:"nodes"`
	Who    string `json:"who"`
	Memory bool   `json:"memory,omitempty"`
	// Scheduled means that the site file asks for it, and not a user.
	Scheduled bool `json:"scheduled,omitempty"`
}

// RestoreFailures lists what was not restored on a host.
type RestoreFailures struct {
	Left []string `json:"left,omitempty"` // volumes that stay as they are, and why
	Lost []string `json:"lost,omitempty"` // parts of the snapshot that could not be restored, and why
}

// StartTime returns the moment at which this host acts together with others that ask at about the same
// time, by this host's clock. It returns the zero time if the host acts alone.
func (h *HostClient) StartTime() time.Time {
	if h.meets == nil {
		return time.Time{}
	}
	return h.meets.next().Add(h.ahead)
}

// ToLocalTime converts a time of the host's clock to this machine's clock, as far as the difference is
// known.
func (h *HostClient) ToLocalTime(at time.Time) time.Time { return at.Add(-h.ahead) }

// RestoringSnapshot returns the snapshot whose restore was interrupted on some host, or "", and the
// nodes to restore.
func RestoringSnapshot(ctx context.Context, f *Fleet) (id string, nodes []string, err error) {
	ids, names := make([]string, len(f.All)), make([][]string, len(f.All))
	err = f.ForEach(func(i int, h *HostClient) (err error) {
		ids[i], names[i], err = h.Snapshots.Restoring(ctx)
		return err
	})
	for i := range ids {
		if ids[i] != "" && (id == "" || id == ids[i]) {
			id, nodes = ids[i], append(nodes, names[i]...)
		}
	}
	return id, nodes, err
}
