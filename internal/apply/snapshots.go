package apply

import (
	"context"
	"time"

	"orrery/internal/snapshot"
	"orrery/internal/volume"
)

// A SnapshotHost has the host's parts of the site's snapshots: of each what its own nodes have written.
type SnapshotHost interface {
	// List returns the parts that are kept, the oldest first, and the names of those that are ready
	// and not yet kept.
	List(ctx context.Context) (kept []*snapshot.Snapshot, ready []string, err error)
	// Size returns how large a part is.
	Size(ctx context.Context, id string) (volume.Size, error)
	// Restoring returns the snapshot whose restoring was cut short, and the nodes that were to be put
	// back; "": none.
	Restoring(ctx context.Context) (id string, nodes []string, err error)

	// Capture makes a part ready, at the pace of all hosts. If it fails, nothing is left of it.
	Capture(ctx context.Context, of Capture, with snapshot.Pace) (*snapshot.Snapshot, error)
	// Keep keeps a part that is ready. What is kept already stays.
	Keep(ctx context.Context, id string) error
	// Remove removes a part, kept or ready. That there is none is no error.
	Remove(ctx context.Context, id string) error

	// Restore puts nodes that are stopped back as they were. Whether they stay so is for then to say,
	// and it is asked while what was there before is still kept: if it fails, all is as it was before,
	// and the problem is of the kind Undone. If ctx ends meanwhile, whoever steers has gone: all stays
	// for the next to resume.
	Restore(ctx context.Context, id string, nodes []string, then func(Back) error) error
}

// A Capture says of which nodes a snapshot is taken.
type Capture struct {
	ID     string `json:"id"`
	Nodes  []int  `json:"nodes"`
	Who    string `json:"who"`
	Memory bool   `json:"memory,omitempty"`
}

// Back is what of a host was not put back.
type Back struct {
	Left []string `json:"left,omitempty"` // volumes that stay as they are, and why
	Lost []string `json:"lost,omitempty"` // what of the snapshot could not be put back, and why
}

// Moment returns when hosts do something together that asked for it at about the same time, by the
// clock of this one. Zero: it is alone.
func (h *Steered) Moment() time.Time {
	if h.meets == nil {
		return time.Time{}
	}
	return h.meets.moment().Add(h.ahead)
}

// Ours returns a moment of the host's clock by that of this machine, as far as the difference is known.
func (h *Steered) Ours(at time.Time) time.Time { return at.Add(-h.ahead) }

// RestoringSnapshot returns the snapshot whose restoring was cut short on some host, and the nodes
// that were to be put back.
func RestoringSnapshot(ctx context.Context, f *Fleet) (id string, nodes []string, err error) {
	ids, names := make([]string, len(f.All)), make([][]string, len(f.All))
	err = f.Each(func(i int, h *Steered) (err error) {
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
