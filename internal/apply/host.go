package apply

import (
	"context"
	"io"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/observe"
	"orrery/internal/observe/drill"
	"orrery/internal/observe/routine"
	"orrery/internal/plan"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

// A Host is a machine that has a part of a site, as operations on the site see it. Each field is
// one subject. Operations inspect the host, do the steps of a plan on it, and read and write its
// records. It knows nothing of the site but its key. None of the interfaces depends on whether the
// machine is this one: a step arrives with everything needed to do it (package plan/pack), and the
// results are plain data or streams.
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

	Near NearHost // nil if the host is another machine
}

// A NearHost offers what cannot be sent over a connection because it consists of paths, descriptors
// and functions of this process. Only the machine on which the program runs has one.
type NearHost interface {
	// ByName returns the engines of the host's nodes. Snapshots, backups and adoptions use them to
	// read, write and mark the private layers of nodes, and the lab uses them to install its tools.
	ByName() map[string]engine.Engine
}

// A RunHost carries out its part of a plan, and keeps the journal.
type RunHost interface {
	Worker
	// Lock takes the site's lock on the host. Every process that changes something must hold it. If
	// another process has the lock, Lock returns a Locked problem that names the holder.
	Lock(ctx context.Context, by host.Holder) (letGo func(), err error)
	// Sweep stops and removes what killed runs left behind. Only the holder of the lock may call
	// it.
	Sweep(ctx context.Context) error
	// DiscardUndo removes what was kept for undoing. The caller passes the steps of a run that has
	// succeeded, or none if the run was undone.
	DiscardUndo(ctx context.Context, done []*plan.Step) error
	// SkippedFiles returns which files are missing in the copies of volumes that were made, and
	// why.
	SkippedFiles(ctx context.Context) ([]string, error)
	// LastDuration returns how long a similar step took last time, or 0 if unknown.
	LastDuration(ctx context.Context, s *plan.Step) (time.Duration, error)
	// Clock returns how far the host's clock is ahead of this machine's, and how long the request
	// took. The result may be wrong by half of that time.
	Clock(ctx context.Context) (ahead, took time.Duration, err error)

	// OpenJournal opens the site's journal on the host for writing. It stays open when ctx ends, so
	// that the end of an interrupted run is recorded, too.
	OpenJournal(ctx context.Context) (Journal, error)
	// ReadJournal returns the entries of the last runs, the oldest first, or all entries for 0, and
	// the numbers of the lines that cannot be read.
	ReadJournal(ctx context.Context, runs int) (all []journal.Entry, damaged []int, err error)
}

// A StateHost has the host's part of the site as a whole.
type StateHost interface {
	// Observe returns what the host has of the site, and what its engines can do. The given engines
	// are tested even if no node uses them.
	Observe(ctx context.Context, engines []string) (observe.Host, error)
	// PublicKey returns the public key with which other hosts encrypt what networks of the site
	// send to this host. It creates a key if there is none. It returns an Unable problem if the
	// host cannot encrypt.
	PublicKey(ctx context.Context) (string, error)
	// SetSiteID records the id of the site that owns the host's nodes. The id tells the site from
	// others of the same name. Observe returns it.
	SetSiteID(ctx context.Context, origin string) error
	// Cordoned returns the mark that no node of the site may move to the host, or nil if nodes may.
	Cordoned(ctx context.Context) (*observe.Drain, error)
	// SetCordoned sets that mark, or removes it if mark is nil.
	SetCordoned(ctx context.Context, mark *observe.Drain) error
	// SavePlan stores what the host does without the control host, in place of its former plan for
	// that trigger, and schedules it. An empty plan removes the former one. It returns notes for
	// the user on how the host runs the plan.
	SavePlan(ctx context.Context, p UnattendedPlan) (notes []string, err error)
	// Routine returns how something went that is done for the whole site at intervals, as far as the
	// host knows.
	Routine(ctx context.Context, name string) (routine.Record, error)
	// SaveRoutine stores that.
	SaveRoutine(ctx context.Context, name string, r routine.Record) error
	// Forget removes all that the host keeps of the site. No node or data that a user could miss
	// may be left of it. It returns which files of Orrery are left, and where.
	Forget(ctx context.Context) (left []string, err error)
}

// A NodeHost has the nodes of the site that are on the host.
type NodeHost interface {
	// List returns the nodes. If an engine fails, it returns the nodes of the others and the error.
	// For an empty site key, it returns the nodes of all sites.
	List(ctx context.Context) ([]observe.Node, error)
	// WithOwner returns the nodes with the id of the site that owns them, for Fleet.ListNodes.
	WithOwner(ctx context.Context, look InspectMode) (OwnedNodes, error)
	// DetectDrift inspects the nodes for which wants has a desired state, and stores in each
	// what has drifted since its roles were applied. Changes that have not been applied yet are not
	// drift, but left to the plan.
	DetectDrift(ctx context.Context, nodes []observe.Node, wants []DesiredNode) error
	// ReadUsage returns the kernel's counters of nodes, in their order. Before holds earlier
	// samples by node id. Unless it is nil, ReadUsage also returns what the nodes used since then.
	// The processor usage of a node without an earlier sample is unknown.
	ReadUsage(ctx context.Context, nodes []observe.Node, before map[int]host.Sample) ([]Reading, error)
	// Log opens the output of a node's roles when they were last applied, or returns fs.ErrNotExist
	// if they printed nothing.
	Log(ctx context.Context, node string) (io.ReadCloser, error)
	// Runner returns a Runner for a running node, for commands, files and connections.
	Runner(n *spec.Node) (host.Runner, error)
	// Console returns the serial console of a node, or an Unable problem if its engine has none.
	Console(n *spec.Node) (host.Console, error)
	// Drill does something to the node of the host that holds the address of a service, and measures how
	// long a client on its network gets no answer. It puts the node back even if ctx ends, except that a node
	// that it has stopped stays so.
	Drill(ctx context.Context, r drill.Request) (drill.Result, error)
	// Screen returns the screen of a node, or an Unable problem if its engine has none.
	Screen(n *spec.Node) (host.Screen, error)
}

// A ReleaseHost has the record of releases, and copies of the site directories from which they were
// staged (package sitearchive).
type ReleaseHost interface {
	// Read returns which releases of the site are live on the host, and which are kept there.
	Read(ctx context.Context) (observe.Releases, error)
	// Write records which releases are live. The record survives a power cut.
	Write(ctx context.Context, r observe.Releases) error
	// Copy stores the record of another host unchanged.
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

// A TwinHost has the twins of the site, or is the host of a twin.
type TwinHost interface {
	// List returns the records of all twins that have anything on the host.
	List(ctx context.Context) ([]twin.Record, error)
	// Save stores the record of the site, which is a twin. It schedules the end of the twin on the
	// host if the twin expires.
	Save(ctx context.Context, r twin.Record) error
	// Fill fills the volumes of a new twin of the site. It copies the volumes of the site, whose
	// writers are frozen during the copy, and the generated secrets. It returns what is missing in
	// the copies.
	Fill(ctx context.Context, name string, of []VolumeCopy) (left []string, err error)
	// Forget removes all that the host keeps of the site, which is a twin that has ended.
	Forget(ctx context.Context) error
}

// A Reading is the usage of a node up to now.
type Reading struct {
	Sample host.Sample `json:"sample"`
	Usage  *Usage      `json:"usage,omitempty"`
}

// A DesiredNode is the desired state of an existing node. For the zero Want, the node is not inspected.
type DesiredNode struct {
	Node   *spec.Node
	Duties *spec.RoleActions
}

// Secrets provides what steps refer to and do not contain: the values of secrets, and the files
// that contain secrets.
type Secrets interface {
	Value(ctx context.Context, name string) (string, error)
	Text(ctx context.Context, t spec.SecretText) ([]byte, error)
	// Redact replaces the values returned so far by their names. NewWriter returns a writer that
	// does the same.
	Redact(text string) string
	NewWriter(to io.Writer) *secret.Writer
	// Fetched returns the values returned so far, by name, for callers that must hide them in output
	// elsewhere.
	Fetched() map[string]string
}

// A Journal records what is done to a site.
type Journal interface {
	Add(e journal.Entry) error
	Close() error
}

// Usage is the current usage of a node. Unknown values are negative.
type Usage struct {
	Processors float64     `json:"processors"` // on average, between two readings
	Memory     int64       `json:"memory"`     // bytes, without the page cache that the kernel can drop
	Pids       int64       `json:"pids"`       // processes and threads
	Disk       int64       `json:"disk"`       // bytes of its private layer
	Volumes    int64       `json:"volumes"`    // bytes of its own volumes that are kept with the host's state
	Partial    bool        `json:"partial,omitempty"`
	Limits     site.Limits `json:"limits"`
}
