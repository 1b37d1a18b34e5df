package apply

import (
	"context"
	"io"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

// A Host is a machine that has a part of a site, as the operations on the site see it, by subject:
// they look at it, do the steps of a plan on it, and keep the record of what they did. It knows
// nothing of the site but its key, and nothing in it says whether the machine is this one: what it
// is given, a step with all that doing it takes (package plan/pack), and what it returns is plain
// data or a stream.
type Host struct {
	Runs      RunHost
	State     StateHost
	Nodes     NodeHost
	Releases  ReleaseHost
	Layers    LayerHost
	Volumes   VolumeHost
	Snapshots SnapshotHost
	Backups   BackupHost
	Twins     TwinHost
	Secrets   SecretHost
	Transfers TransferHost

	Near NearHost // nil: the host is another machine
}

// A NearHost has what operations need that does not travel, because it is made of paths,
// descriptors and functions of this process. Only the machine on which the program runs has it.
type NearHost interface {
	// ByName returns the engines of the host's nodes: a snapshot, a backup and an adoption read, write
	// and mark what is in the private layers of nodes, and the lab puts its tools there.
	ByName() map[string]engine.Engine
}

// A RunHost carries out its part of a plan, and keeps the journal.
type RunHost interface {
	Worker
	// Lock takes the site's lock on the host, which all need who change anything. If somebody else has
	// it, that is a Locked problem that names them.
	Lock(ctx context.Context, by host.Holder) (letGo func(), err error)
	// Sweep ends and removes what runs that were killed left behind. Only the holder of the lock may call it.
	Sweep(ctx context.Context) error
	// DiscardUndo removes what was kept for undoing, once a run that did these steps has succeeded, or
	// has been undone, so that none is done.
	DiscardUndo(ctx context.Context, done []*plan.Step) error
	// SkippedFiles returns what is not in the copies of volumes that were made, and why.
	SkippedFiles(ctx context.Context) ([]string, error)
	// LastDuration returns how long a step took that was like this one, or 0 if nobody knows.
	LastDuration(ctx context.Context, s *plan.Step) (time.Duration, error)
	// Clock returns how far the host's clock is ahead of this machine's, and how long asking took: the
	// answer may be wrong by half of that.
	Clock(ctx context.Context) (ahead, took time.Duration, err error)

	// OpenJournal opens the site's journal on the host for writing, which does not end with ctx: how
	// an interrupted run ended is noted, too.
	OpenJournal(ctx context.Context) (Journal, error)
	// ReadJournal returns the journal from where the last so many runs begin, or all of it for 0, the
	// oldest entry first, and the numbers of the lines that cannot be read.
	ReadJournal(ctx context.Context, runs int) (all []journal.Entry, damaged []int, err error)
}

// A StateHost has the host's part of the site as a whole.
type StateHost interface {
	// Observe returns what the host has of the site, and what its engines can do. These engines are
	// tried even if no node uses them.
	Observe(ctx context.Context, engines []string) (observe.Host, error)
	// PublicKey returns the public key with which others encrypt what networks of the site send to the
	// host. It makes one if there is none. If the host cannot encrypt, that is an Unable problem.
	PublicKey(ctx context.Context) (string, error)
	// SetSiteID records the id of the site that owns the host's nodes, which tells it from others of
	// that name. Observe returns it.
	SetSiteID(ctx context.Context, origin string) error
	// Cordoned returns the mark that no node of the site comes to the host any more, or nil if they may.
	Cordoned(ctx context.Context) (*observe.Drain, error)
	// SetCordoned sets that mark, or removes it for nil.
	SetCordoned(ctx context.Context, mark *observe.Drain) error
	// SavePlan stores what the host does without the control host, in the place of its former plan for
	// that trigger, and sees to it that the host does it. An empty plan ends the former one. It
	// returns what a user should know of how the host runs it.
	SavePlan(ctx context.Context, p UnattendedPlan) (notes []string, err error)
	// Forget removes all that the host keeps of the site, of which nothing may be there any more that
	// somebody could miss. It returns what of Orrery's is left, and where.
	Forget(ctx context.Context) (left []string, err error)
}

// A NodeHost has the nodes of the site that are on the host.
type NodeHost interface {
	// List returns the nodes, and the rest of them if an engine fails. Of a site without a key, they
	// are those of all sites.
	List(ctx context.Context) ([]observe.Node, error)
	// WithOwner returns them with the id of the site that owns them, for Fleet.Present.
	WithOwner(ctx context.Context, look Look) (Present, error)
	// DetectDrift looks into those of some nodes of which it is said what they shall be, and notes
	// with each what has drifted since its roles were applied. What has not been applied yet is no
	// drift: that is for the plan.
	DetectDrift(ctx context.Context, nodes []observe.Node, wants []Want) error
	// ReadUsage reads what the kernel has counted of nodes, in their order, and what they have used
	// since the samples before, by id, unless that is nil. Of a node without such a sample, it is not
	// known how many processors it uses.
	ReadUsage(ctx context.Context, nodes []observe.Node, before map[int]host.Sample) ([]Reading, error)
	// Log opens what the roles of a node printed when they were applied. If they printed nothing, that
	// is fs.ErrNotExist.
	Log(ctx context.Context, node string) (io.ReadCloser, error)
	// Runner returns the way into a running node: commands, files, connections.
	Runner(n *spec.Node) (host.Runner, error)
	// Console returns the serial console of a node, or an Unable problem if its engine has none.
	Console(n *spec.Node) (host.Console, error)
	// Screen returns the screen of a node, or an Unable problem if its engine has none.
	Screen(n *spec.Node) (host.Screen, error)
}

// A ReleaseHost has the record of releases, and copies of the site directories from which they were
// staged (package edition).
type ReleaseHost interface {
	// Read returns which releases of the site are live on the host, and which are kept there.
	Read(ctx context.Context) (observe.Releases, error)
	// Write records which are live, safe against a power cut.
	Write(ctx context.Context, r observe.Releases) error
	// Copy records what another host has on record, as it is there.
	Copy(ctx context.Context, r observe.Releases) error
	// Editions returns the digests of the copies that the host keeps of these releases, or "" for a
	// copy that cannot be read.
	Editions(ctx context.Context, of []int) (map[int]string, error)
	// SendEdition sends the copy of a release, or returns fs.ErrNotExist if the host has none.
	SendEdition(ctx context.Context, release int, rw io.ReadWriter) error
	// KeepEdition stores such a copy, which replaces a former one as a whole. A copy with another
	// digest is refused, and the former one stays.
	KeepEdition(ctx context.Context, release int, digest string, rw io.ReadWriter) error
}

// A TwinHost has twins of the site, or is asked as the host of one.
type TwinHost interface {
	// List returns the records of all twins of which the host has something.
	List(ctx context.Context) ([]twin.Record, error)
	// Save keeps the record of the site, which is a twin, and lets the host end by itself what it has
	// of it when its time is over.
	Save(ctx context.Context, r twin.Record) error
	// Fill fills the volumes of a new twin of the site with copies of the site's, whose writers are
	// frozen meanwhile, and with the secrets that were generated for the site. It returns what is not
	// in the copies.
	Fill(ctx context.Context, name string, of []Share) (left []string, err error)
	// Forget removes all that is kept of the site, which is a twin that has ended.
	Forget(ctx context.Context) error
}

// A Reading is what a node has used by now.
type Reading struct {
	Sample host.Sample `json:"sample"`
	Usage  *Usage      `json:"usage,omitempty"`
}

// A Want is what a node that is there shall be. The zero one says nothing: nobody looks into the node.
type Want struct {
	Node   *spec.Node
	Duties *spec.Duties
}

// Secrets provides what steps refer to and do not contain: the values of secrets, and the files
// that contain some.
type Secrets interface {
	Value(ctx context.Context, name string) (string, error)
	Text(ctx context.Context, t spec.SecretText) ([]byte, error)
	// Redact replaces the values given so far by their names, and NewWriter gives a writer that does.
	Redact(text string) string
	NewWriter(to io.Writer) *secret.Writer
	// Known returns the values given so far, by name, for whoever prints elsewhere and must not show them.
	Known() map[string]string
}

// A Journal is where is noted what is done to a site.
type Journal interface {
	Add(e journal.Entry) error
	Close() error
}

// Usage is what a node uses now. What cannot be told is negative.
type Usage struct {
	Processors float64     `json:"processors"` // on average, between two readings
	Memory     int64       `json:"memory"`     // bytes, without what of the page cache goes by itself
	Pids       int64       `json:"pids"`       // processes and threads
	Disk       int64       `json:"disk"`       // bytes of its private layer
	Volumes    int64       `json:"volumes"`    // bytes of its own volumes that are kept with the host's state
	Partial    bool        `json:"partial,omitempty"`
	Limits     site.Limits `json:"limits"`
}
