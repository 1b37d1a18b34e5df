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
	// Describe tells of directories, in the order in which they are asked for.
	Describe(ctx context.Context, of []Directory) ([]Contents, error)
	// Mirror brings the mirrors of directories up to date, as the host reaches these. Each is told of
	// when it has been tried, also if that failed, which is an error, too.
	Mirror(ctx context.Context, of []Directory, with MirrorRun, each func(volume.Mirrored)) error
	// Verify compares directories with their mirrors.
	Verify(ctx context.Context, of []Directory) ([][]volume.Deviation, error)
	// Adoptions returns what a node is to take over there from another. That there is no such data is
	// a Usage problem.
	Adoptions(ctx context.Context, of Heritage) ([]Adoption, error)
	// Adopt moves that data to the node, unless a running node uses some of it. It returns what was moved, even
	// if there is an error.
	Adopt(ctx context.Context, of Heritage) ([]Adopted, error)
	// Receive takes in what comes along a stream (package treesync) as a volume of the site, which is
	// a twin: what a program has made for it elsewhere.
	Receive(ctx context.Context, of Directory, way io.ReadWriter) error
}

// A Directory is that of a volume on a host.
type Directory struct {
	Node   string     `json:"node"` // whose it is
	Mount  spec.Mount `json:"mount"`
	Path   string     `json:"path,omitempty"` // of one that no node uses; else it follows from the rest
	Mirror string     `json:"mirror,omitempty"`

	Every time.Duration `json:"every,omitempty"` // how often that is brought up to date by itself; 0: it is not
}

// At returns where a directory is.
func (d Directory) At(dirs host.Dirs, key string) string {
	if d.Path != "" {
		return d.Path
	}
	return volume.Path(dirs, key, d.Node, d.Mount)
}

// Name returns what the directory is called: as its node, or as that of all.
func (d Directory) Name() string {
	if d.Mount.Shared {
		return volume.ForAll
	}
	return d.Node
}

// A Share is a volume of a node of which its twin gets a copy.
type Share struct {
	Node string     `json:"node"`
	From spec.Mount `json:"from"`
	To   spec.Mount `json:"to"` // of the twin
}

// A Heritage is the data of a node that is to be another's.
type Heritage struct {
	Former string    `json:"former"`
	Heir   spec.Node `json:"heir"`
	// volumes, as WAS=IS if they were called otherwise; none: all that the heir uses
	Named []string `json:"named,omitempty"`
}

// An Adoption is a directory that is to be another node's.
type Adoption struct {
	Volume string   `json:"volume"`          // as it was called
	As     string   `json:"as"`              // as the heir calls it
	Users  []string `json:"users,omitempty"` // nodes that run and use it, or what is in its place
}

// InUse says that a volume cannot change hands.
func InUse(node, volume string) error {
	return problem.New(problem.Refused, "node %s runs and uses volume %s; nothing was done", node, volume).
		Try("orrery stop %s", node)
}

// Adopted is one that is.
type Adopted struct {
	Volume string `json:"volume"` // of the former node
	To     string `json:"to"`     // where it is now
	Kept   string `json:"kept"`   // where that is which the node had itself; "": it had nothing
}

// Contents is what is in a directory of a volume.
type Contents struct {
	Path  string           `json:"path"`
	Size  volume.Size      `json:"size"`
	There bool             `json:"there,omitempty"`
	Last  *volume.Mirrored `json:"last,omitempty"` // how its mirror was brought up to date; nil: it never was
	Next  time.Time        `json:"next,omitzero"`  // when it will be, by itself
	Idle  string           `json:"idle,omitempty"` // why it will not, although the site file says so
}

// A MirrorRun says how mirrors are brought up to date.
type MirrorRun struct {
	Contents bool        `json:"contents,omitempty"` // these are compared, instead of sizes and times
	By       host.Holder `json:"by"`
}
