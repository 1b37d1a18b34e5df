package engine

import (
	"context"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// An Engine makes, runs and removes nodes on one host. Its methods may be called for different
// nodes at the same time. Each of them, when it is interrupted at any moment, leaves a node that
// List still shows (as Broken, if it is half made or half removed), and that Destroy removes.
type Engine interface {
	// Capabilities says what the engine can do beyond the methods here. It starts no process and tries
	// nothing: see Trier.
	Capabilities() observe.Capabilities
	// List returns the engine's nodes of a site, by name; of all sites, if the site is "".
	List(ctx context.Context, site string) ([]observe.Node, error)
	// Create makes a node, stopped. The layers of the spec are in the store. A node that is there
	// already is a Surprise.
	Create(ctx context.Context, n *spec.Node) error
	// Change makes a node as specified in all but its layers; interfaces, mounts, privileges and
	// limits only of a stopped node. An engine that has Capabilities.LiveLimits changes limits of a
	// running one at once, and reads them back; one that has Capabilities.MoveNIC the bridges on which
	// its interfaces are, and one that has Capabilities.PlugNIC the interfaces themselves, as far as
	// spec.Rewire says.
	Change(ctx context.Context, n *spec.Node) error
	// Start boots a node; it returns as soon as commands can be run in it. A running node is left as it is.
	Start(ctx context.Context, ref Ref) error
	// Stop shuts a node down, and when ctx has a deadline and it passes, by force. A stopped node is
	// left as it is.
	Stop(ctx context.Context, ref Ref) error
	// Destroy removes a node, whatever its state, and all that it wrote outside volumes. One that is
	// not there is no error.
	Destroy(ctx context.Context, ref Ref) error
	// Mark records how far a node has been configured and proven.
	Mark(ctx context.Context, ref Ref, m Mark) error
	// Runner runs commands in a running node. That it does not run is told by NotRunning, as by
	// Freeze, Remount and View.
	Runner(ref Ref) host.Runner
}

// A Trier is an engine that finds out some of what it can do only by a trial, which takes a moment.
// Its Capabilities tell what is known without.
type Trier interface {
	// Try returns the Capabilities, with what comes of the trial. One of a process is enough.
	Try(ctx context.Context) observe.Capabilities
}

// Tried returns the Capabilities of an engine, after the trial that it needs.
func Tried(ctx context.Context, e Engine) observe.Capabilities {
	if t, ok := e.(Trier); ok {
		return t.Try(ctx)
	}
	return e.Capabilities()
}

// A Glancer is an engine that can see whether a node runs of which it knows only what nodedir.Head
// does, in less time than List takes.
type Glancer interface {
	// Glance sees how a node of the engine is that is there.
	Glance(n *observe.Node)
}

// Glances returns what sees how a node of any of some engines is, if all of them are Glancers.
func Glances(engines map[string]Engine) (see func(*observe.Node), can bool) {
	for _, e := range engines {
		if _, can := e.(Glancer); !can {
			return nil, false
		}
	}
	return func(n *observe.Node) {
		if e, known := engines[n.Engine]; known {
			e.(Glancer).Glance(n)
		}
	}, true
}

// A Keeper is an engine that can set a node's private layer aside, so that a replacement can be
// undone at once: it has Capabilities.Keep.
type Keeper interface {
	// Replace makes a stopped node anew with other layers and keeps the former one aside.
	Replace(ctx context.Context, n *spec.Node) error
	// Restore puts the former node, stopped, back in the place of a stopped one.
	Restore(ctx context.Context, ref Ref) error
	// Settle removes the former node.
	Settle(ctx context.Context, ref Ref) error
}

// A Receiver is an engine that makes nodes of what has come of them from another host: it has
// Capabilities.Move.
type Receiver interface {
	Layered
	// OfHost returns the paths of a node's private layer that are this host's affair and have not been
	// changed: they do not go along, and the other one makes its own.
	OfHost(n *spec.Node) []string
	// Receive makes a node, stopped, of the private layer that it had there, which is as
	// Layered.Private says, and of how far it had come; resumes notes that it is to run again.
	Receive(ctx context.Context, n *spec.Node, layer string, m Mark, resumes bool) error
}

// An Idmapper is an engine whose nodes see files of the host, but have user ids of their own.
type Idmapper interface {
	// Idmap returns the id, on the host, of a node's root; its other ids follow.
	Idmap(ref Ref) (first int, err error)
}

// A Spacer is an engine whose running nodes have network namespaces.
type Spacer interface {
	// Space returns the file of a node's network namespace; "" if it does not run.
	Space(ref Ref) string
}

// A Sweeper is an engine of which something may still be under way when the program is killed.
type Sweeper interface {
	// Sweep ends what a killed run of a site left under way, and removes what it left half made. Only
	// the holder of the site's lock may call it.
	Sweep(ctx context.Context, site string) error
}

// An Injector is an engine that can change the files of a node that does not run, so that it boots with them.
type Injector interface {
	// Inject writes files.
	Inject(ctx context.Context, ref Ref, files ...host.File) error
	// Disable lets systemd units not start when the node boots, as systemctl disable does. One that is
	// not enabled stays so.
	Disable(ctx context.Context, ref Ref, units ...string) error
}

// A Remounter is an engine that can change which volumes a running node sees: it has Capabilities.Remount.
type Remounter interface {
	// Remount lets a running node see the volumes of the spec and no others. What it takes on is on
	// record before it has it, and what it lets go of until it has it no more: so the record never
	// says less than is so, however a run ends. A volume that a process still uses is a Failed problem
	// that names the process, and stays.
	Remount(ctx context.Context, n *spec.Node) error
}

// A Freezer is an engine that can let all processes of a running node stand still.
type Freezer interface {
	// Freeze returns when all of them do. A node that is frozen is left as it is.
	Freeze(ctx context.Context, ref Ref) error
	// Thaw lets them go on. A node that is not frozen, or does not run, is left as it is.
	Thaw(ctx context.Context, ref Ref) error
}

// A Flusher is a Freezer whose nodes keep changes of files in memory of their own. Writing takes a
// moment, so all nodes that are to stand still do it before the first does.
type Flusher interface {
	// Flush lets a running node write, as far as it does: what it has not written, a power cut would lose as well.
	Flush(ctx context.Context, ref Ref)
}

// A Layered engine keeps what a node has written outside volumes as a directory of the host: the
// upper directory of an overlayfs (deleted files are character devices 0:0, see overlayfs.rst of
// the kernel), with the owners that the node sees.
type Layered interface {
	Private(ref Ref) (dir string)
	// Fill puts another such directory in its place. The node has just been made, and has never run.
	Fill(ref Ref, layer string) error
}

// A Viewer is an engine by which the host can reach the files of a running node without running anything in it.
type Viewer interface {
	// View opens the root of a running node, as the node sees it and through its own mounts: what is
	// written there is written as the node's processes do. Owners in there are those that the host
	// sees, see Idmapper.
	View(ref Ref) (*tree.Root, error)
}

// A Consoled engine's nodes have a serial console.
type Consoled interface {
	Console(ref Ref) host.Console
}

// A Screened engine's nodes may have screens; that one has none is an Unable problem.
type Screened interface {
	Screen(ref Ref) host.Screen
}

// A Pooled engine's nodes have no part of the host's memory, but of a pool that is beside it.
type Pooled interface {
	// Pool tells of it; nil: the host does not say, or runs no nodes of the engine.
	Pool(ctx context.Context) *observe.Pool
}

// A Grouped engine keeps the processes of a node in a control group of the host, of the same name
// in every hierarchy.
type Grouped interface {
	Cgroup(ref Ref) (path string) // from the root of a hierarchy
}

// A Renewer is an engine whose running nodes can go on in other programs of the host than those
// that they were started with.
type Renewer interface {
	// Renew lets a running node go on in the programs that the host has now. Its processes, its memory
	// and its connections are not disturbed but for a moment. If that fails, it goes on where it was.
	Renew(ctx context.Context, ref Ref) (*Renewal, error)
}

// A Rememberer is an engine that can keep the memory of running nodes, and let them go on from it.
type Rememberer interface {
	// Remember writes the memory of a node that stands still to a new file, for root alone. The node
	// stands still on, until Thaw.
	Remember(ctx context.Context, ref Ref, file string) error
	// Recall lets a node that does not run go on from such a file when it is started next, instead of
	// booting; "": it boots.
	Recall(ref Ref, file string) error
}

// A Renewal is how that went.
type Renewal struct {
	Downtime time.Duration // for how long the node stood still
	Took     time.Duration // altogether
	Bytes    int64         // that went from one program to the other
}

// A Ref names a node on a host.
type Ref struct {
	Site string
	ID   int
	Name string
}

// NotRunning says that what was asked can be had of a running node only. It may have been one when
// the plan was made, or the caller asked; so it is a failure like any other that a node stops in
// the middle of, and no Surprise that makes a new plan worth while.
func NotRunning(ref Ref) error {
	return problem.New(problem.Failed, "node %s does not run", ref.Name).At(ref.Site).Try("orrery up %s", ref.Name)
}

// RefOf returns the Ref of a specified node.
func RefOf(n *spec.Node) Ref { return Ref{n.Site, n.ID, n.Name} }

// A Mark says how far a node has come.
type Mark struct {
	Configured bool
	Config     spec.Config // as applied
	Proven     string      // digest of the health checks passed last,
	ProvenAt   time.Time   // and when that was
	Active     bool        // what only a live node does has been done, or may have been
}
