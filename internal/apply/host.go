package apply

import (
	"context"
	"io"
	"time"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/journal"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

// A Host is a machine that has a part of a site, as the operations on the site see it: they look at it, do the steps of a plan on it, and keep the
// record of what they did. It knows nothing of the site but its key, and nothing in it says whether the machine is this one: what it is given, a step with
// all that doing it takes (package plan/pack), and what it gives is plain data or a stream.
type Host interface {
	Worker
	Passing
	Keeper
	Shelf
	Cellar
	Storeroom
	Ferry

	// Hold takes the site's lock on the host, which all need who change anything. If somebody else has it, that is a Locked problem that names them.
	Hold(ctx context.Context, by host.Holder) (letGo func(), err error)
	// Sweep ends and removes what runs that were killed left behind. Only the holder of the lock may call it.
	Sweep(ctx context.Context) error
	// Observe looks at what is there of the site, and at what the engines can do. What takes a trial is told of those engines only of which nodes are there, or wanted.
	Observe(ctx context.Context, engines []string) (observe.Host, error)
	// PublicKey gives the public key with which others encrypt what networks of the site send to the host, which makes it if there is none. That the host cannot is an Unable problem.
	PublicKey(ctx context.Context) (string, error)
	// Mark takes down of which site the nodes are that the host has, or will have: its id tells it from others of that name. Observe gives it.
	Mark(ctx context.Context, origin string) error
	// Drained gives the mark on the host that no node of the site comes to it any more; nil: they may.
	Drained(ctx context.Context) (*observe.Drain, error)
	// SetDrained puts the mark on the host that no node of the site comes to it any more, or takes it away: nil.
	SetDrained(ctx context.Context, mark *observe.Drain) error
	// Forget removes all that the host keeps of the site, of which nothing may be there any more that somebody could miss. It tells what of Orrery's is left, and where.
	Forget(ctx context.Context) (left []string, err error)
	// Nodes gives the nodes of it that are there, and the rest of them if an engine cannot tell; of a site without a key, those of all sites.
	Nodes(ctx context.Context) ([]observe.Node, error)
	// Present gives them with whose they are, for Fleet.Present.
	Present(ctx context.Context, look Look) (Present, error)
	// Probe looks into those of some nodes of which it is said what they shall be, and notes with each what has drifted since its roles were applied.
	// What has not been applied yet is no drift: that is for the plan.
	Probe(ctx context.Context, nodes []observe.Node, wants []Want) error
	// Describe gives what is on record of layers in the host's store.
	Describe(ctx context.Context, layers []string) ([]image.Record, error)
	// Settle removes what was kept for undoing, once a run that did these steps has succeeded, or has been undone, so that none is done.
	Settle(ctx context.Context, done []*plan.Step) error
	// Left returns what is not in the copies of volumes that were made, and why.
	Left(ctx context.Context) ([]string, error)
	// Took returns how long a step took that was like this one, or 0 if nobody knows.
	Took(ctx context.Context, s *plan.Step) (time.Duration, error)

	// ReadReleases tells which releases of the site are live on the host, and which are kept there.
	ReadReleases(ctx context.Context) (observe.Releases, error)
	// WriteReleases takes down which are live, safe against a power cut.
	WriteReleases(r observe.Releases) error
	// CopyReleases takes down what another host has on record, as it is there.
	CopyReleases(r observe.Releases) error
	// Editions tells of which of some releases the host keeps a copy of the site directory, and gives their digests; "": a copy is there, and cannot be read.
	Editions(ctx context.Context, of []int) (map[int]string, error)
	// SendEdition sends the copy from which a release was staged, see package edition. If the host has none, that is fs.ErrNotExist.
	SendEdition(ctx context.Context, release int, rw io.ReadWriter) error
	// Receive keeps a file from which a layer is to be built there, which is what its digest says, see package imported.
	Receive(ctx context.Context, digest string, rw io.ReadWriter) error
	// KeepEdition stores such a copy, which replaces a former one as a whole. A copy with another digest is refused, and the former one stays.
	KeepEdition(ctx context.Context, release int, digest string, rw io.ReadWriter) error

	// KeepWayBack keeps what the host needs to go back by itself when the time of a trial is over, and lets somebody watch over that from now on.
	KeepWayBack(ctx context.Context, w WayBack) error
	// KeepBoot keeps what the host does by itself after a reboot.
	KeepBoot(ctx context.Context, b Boot) error

	// Twins gives the records of all twins of which the host has something.
	Twins(ctx context.Context) ([]twin.Record, error)
	// KeepTwin keeps the record of the site, which is a twin, and lets the host end by itself what it has of it when its time is over.
	KeepTwin(ctx context.Context, r twin.Record) error
	// FillTwin gives a twin of the site what its volumes begin with there, unless it has got that: copies of volumes of the site, whose writers stand still meanwhile, with the secrets
	// that were generated for the site. It gives what is not in the copies.
	FillTwin(ctx context.Context, name string, of []Share) (left []string, err error)
	// ForgetTwin removes all that is kept of the site, which is a twin that has ended.
	ForgetTwin(ctx context.Context) error

	// Clock tells how far the clock of the host is ahead of this machine's, and how long asking took: the answer may be wrong by half of that.
	Clock(ctx context.Context) (ahead, took time.Duration, err error)

	// Journal opens the site's journal on the host for writing.
	Journal() (Journal, error)
	// Entries gives what the journal has from where the last so many runs begin (0: all), the oldest first, and the numbers of the lines that cannot be read.
	Entries(ctx context.Context, runs int) (all []journal.Entry, damaged []int, err error)
	// Log opens what the roles of a node printed when they were applied. If they printed nothing, that is fs.ErrNotExist.
	Log(ctx context.Context, node string) (io.ReadCloser, error)
	// Redact hides the values of secrets in what something on the host printed.
	Redact(text string) string

	// Runner gives the way into a running node: commands, files, connections.
	Runner(n *spec.Node) (host.Runner, error)
	// Console gives the serial console of a node. That its engine gives it none is an Unable problem.
	Console(n *spec.Node) (host.Console, error)
	// Screen gives the screen of a node. That its engine gives it none is an Unable problem.
	Screen(n *spec.Node) (host.Screen, error)
	// Meter reads what the kernel has counted of nodes, in their order, and what they have used since the samples before, by id, unless that
	// is nil. Of a node without such a sample, it is not known how many processors it uses.
	Meter(ctx context.Context, nodes []observe.Node, before map[int]host.Sample) ([]Reading, error)
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

// Secrets gives what steps refer to and have not with them: the values of secrets, and the files that have some in them.
type Secrets interface {
	Value(ctx context.Context, name string) (string, error)
	Text(ctx context.Context, t spec.SecretText) ([]byte, error)
	// Redact replaces the values given so far by their names, and NewWriter gives a writer that does.
	Redact(text string) string
	NewWriter(to io.Writer) *secret.Writer
	// Known gives the values given so far, by name, for whoever prints elsewhere and must not show them.
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
