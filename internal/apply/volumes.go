package apply

import (
	"context"
	"io"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// A VolumeHost has the directories of volumes.
type VolumeHost interface {
	// Describe returns the contents of directories, in the given order.
	Describe(ctx context.Context, of []Directory) ([]VolumeStatus, error)
	// Mirror updates the mirrors of directories. It calls each after every attempt, successful or
	// not. The error joins the failures.
	Mirror(ctx context.Context, of []Directory, with MirrorRun, each func(volume.MirrorStatus)) error
	// Verify compares directories with their mirrors.
	Verify(ctx context.Context, of []Directory) ([][]volume.Difference, error)
	// Adoptions returns the directories that a node would take over from another node. It returns a
	// Usage problem if there are none.
	Adoptions(ctx context.Context, of AdoptRequest) ([]Adoption, error)
	// Adopt moves these directories to the node, unless a running node uses one of them. It returns
	// what it moved, even if there is an error.
	Adopt(ctx context.Context, of AdoptRequest) ([]AdoptResult, error)
	// Receive stores what arrives over a stream (package treesync) as a volume of the site, which
	// is a twin. A program on the control host made it for the twin.
	Receive(ctx context.Context, of Directory, way io.ReadWriter) error
}

// A Directory is the directory of a volume on a host.
type Directory struct {
	Node   string     `json:"node"` // the node that owns it
	Mount  spec.Mount `json:"mount"`
	Path   string     `json:"path,omitempty"` // only for a volume that no node uses; else it follows from the rest
	Mirror string     `json:"mirror,omitempty"`

	Every time.Duration `json:"every,omitempty"` // how often the mirror is updated automatically, or 0 for never
}

// At returns the path of the directory.
func (d Directory) At(dirs host.Dirs, key string) string {
	if d.Path != "" {
		return d.Path
	}
	return volume.Path(dirs, key, d.Node, d.Mount)
}

// Name returns the name of the node that owns the directory, or volume.SharedDir if it is shared.
func (d Directory) Name() string {
	if d.Mount.Shared {
		return volume.SharedDir
	}
	return d.Node
}

// A VolumeCopy is a volume of a node that is copied to the node's twin.
type VolumeCopy struct {
	Node string     `json:"node"`
	From spec.Mount `json:"from"`
	To   spec.Mount `json:"to"` // the mount of the twin
}

// An AdoptRequest is the data of a former node that another node will take over.
type AdoptRequest struct {
	Former string    `json:"former"`
	Heir   spec.Node `json:"heir"`
	// volumes, as FORMER=NEW if their names differ, or none for all that the heir uses
	Named []string `json:"named,omitempty"`
}

// An Adoption is a directory that another node will take over.
type Adoption struct {
	Volume string   `json:"volume"`          // its former name
	As     string   `json:"as"`              // its name for the heir
	Users  []string `json:"users,omitempty"` // running nodes that use it, or use what is in its place
}

// InUse returns the error for a volume that a running node uses.
func InUse(node, volume string) error {
	return problem.New(problem.Refused, "node %s runs and uses volume %s; nothing was done", node, volume).
		Try("orrery stop %s", node)
}

// An AdoptResult is a directory that was taken over.
type AdoptResult struct {
	Volume string `json:"volume"` // of the former node
	To     string `json:"to"`     // where it is now
	Kept   string `json:"kept"`   // where the node's own former data is now, or "" if it had none
}

// VolumeStatus is what is in a directory of a volume.
type VolumeStatus struct {
	Path  string               `json:"path"`
	Size  volume.Size          `json:"size"`
	There bool                 `json:"there,omitempty"`
	Last  *volume.MirrorStatus `json:"last,omitempty"` // the last update of its mirror, or nil if there was none
	Next  time.Time            `json:"next,omitzero"`  // the next automatic update
	// why there is no automatic update although the site file asks for one
	Idle string `json:"idle,omitempty"`
}

// A MirrorRun says how mirrors are updated.
type MirrorRun struct {
	Contents bool        `json:"contents,omitempty"` // compare contents instead of sizes and times
	By       host.Holder `json:"by"`
}
