package apply

import (
	"context"

	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// A Cellar has the directories of volumes.
type Cellar interface {
	// Volumes tells of directories, in the order in which they are asked for.
	Volumes(ctx context.Context, of []Directory) ([]Contents, error)
	// MirrorVolumes brings the mirrors of directories up to date, as the host reaches these. Each is told of when it has been tried, also if that failed, which is an error, too.
	MirrorVolumes(ctx context.Context, of []Directory, with MirrorRun, each func(volume.Mirrored)) error
	// VerifyVolumes compares directories with their mirrors.
	VerifyVolumes(ctx context.Context, of []Directory) ([][]volume.Deviation, error)
}

// A Directory is that of a volume on a host.
type Directory struct {
	Node   string     `json:"node"` // whose it is
	Mount  spec.Mount `json:"mount"`
	Path   string     `json:"path,omitempty"` // of one that no node uses; else it follows from the rest
	Mirror string     `json:"mirror,omitempty"`
}

// At gives where a directory is.
func (d Directory) At(dirs host.Dirs, key string) string {
	if d.Path != "" {
		return d.Path
	}
	return volume.Path(dirs, key, d.Node, d.Mount)
}

// Name gives what the directory is called: as its node, or as that of all.
func (d Directory) Name() string {
	if d.Mount.Shared {
		return volume.ForAll
	}
	return d.Node
}

// Contents is what is in a directory of a volume.
type Contents struct {
	Path  string           `json:"path"`
	Size  volume.Size      `json:"size"`
	There bool             `json:"there,omitempty"`
	Last  *volume.Mirrored `json:"last,omitempty"` // how its mirror was brought up to date; nil: it never was
}

// A MirrorRun says how mirrors are brought up to date.
type MirrorRun struct {
	Contents bool        `json:"contents,omitempty"` // these are compared, instead of sizes and times
	By       host.Holder `json:"by"`
}
