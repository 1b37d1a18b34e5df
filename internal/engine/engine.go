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
// nodes at the same time. If a method is interrupted at any moment, List still shows the node, as
// Broken if it is half made or half removed, and Destroy removes it.
type Engine interface {
	// Capabilities returns what the engine can do beyond these methods. It starts no process and
	// tries nothing, unlike ProbeCapabilities.
	Capabilities() observe.Capabilities
	// List returns the engine's nodes of a site, or of all sites if site is "", sorted by name.
	List(ctx context.Context, site string) ([]observe.Node, error)
	// Create makes a stopped node. The layers of the spec must be in the store. If the node exists
	// already, Create returns a Surprise problem.
	Create(ctx context.Context, n *spec.Node) error
	// Change updates everything but the layers of a node to the spec. Interfaces, mounts,
	// privileges and limits of a running node cannot be changed, except by these engines. With
	// Capabilities.LiveLimits, Change sets limits of a running node at once and reads them back.
	// With Capabilities.MoveNIC, it moves interfaces to other bridges. With Capabilities.PlugNIC,
	// it adds and removes interfaces, as far as spec.NICChange says.
	Change(ctx context.Context, n *spec.Node) error
	// Start boots a node and returns as soon as commands can be run in it. It leaves a running node
	// alone.
	Start(ctx context.Context, ref Ref) error
	// Stop shuts a node down. If ctx has a deadline and it passes, Stop kills the node. It leaves a
	// stopped node alone.
	Stop(ctx context.Context, ref Ref) error
	// Destroy removes a node in any state, and everything that the node wrote outside volumes. A
	// missing node is no error.
	Destroy(ctx context.Context, ref Ref) error
	// SetProgress records how far a node has been configured, and which health checks it has passed.
	SetProgress(ctx context.Context, ref Ref, m Progress) error
	// Runner returns a runner of commands in a running node. If the node does not run, the runner
	// returns NotRunning, as Freeze, Remount and View do.
	Runner(ref Ref) host.Runner
}

// EmulationFactor is how many times longer a node with emulated processors (observe.TCG) may take to
// boot.
const EmulationFactor = 6

// A CapabilityProber is an engine that must try some abilities out to know them, which takes a moment. Its
// Capabilities method reports only what is known without a trial.
type CapabilityProber interface {
	// ProbeCapabilities returns the Capabilities, including the results of the trial. One trial in a process is
	// enough.
	ProbeCapabilities(ctx context.Context) observe.Capabilities
}

// ProbedCapabilities returns the Capabilities of an engine, including the results of a trial if the engine
// is a CapabilityProber.
func ProbedCapabilities(ctx context.Context, e Engine) observe.Capabilities {
	if t, ok := e.(CapabilityProber); ok {
		return t.ProbeCapabilities(ctx)
	}
	return e.Capabilities()
}

// A StateReader is an engine that can find out faster than List whether a node runs. It needs to know
// only what nodedir.Head reads of the node.
type StateReader interface {
	// ReadState sets the state of an existing node of the engine.
	ReadState(n *observe.Node)
}

// StateReaderOf returns a function that sets the state of a node of any of the engines. It reports false
// if one of them is not a Glancer.
func StateReaderOf(engines map[string]Engine) (see func(*observe.Node), can bool) {
	for _, e := range engines {
		if _, can := e.(StateReader); !can {
			return nil, false
		}
	}
	return func(n *observe.Node) {
		if e, known := engines[n.Engine]; known {
			e.(StateReader).ReadState(n)
		}
	}, true
}

// A Replacer is an engine that can set a node's private layer aside, so that a replacement can be
// undone at once. It has Capabilities.Keep.
type Replacer interface {
	// Replace makes a stopped node from other layers and keeps the former node aside.
	Replace(ctx context.Context, n *spec.Node) error
	// Restore puts the former node, stopped, back in the place of a stopped one.
	Restore(ctx context.Context, ref Ref) error
	// Settle removes the former node.
	Settle(ctx context.Context, ref Ref) error
}

// A Migrator is an engine that can make a node from the private layer received from another host.
// It has Capabilities.Move.
type Migrator interface {
	Layered
	// HostSpecificFiles returns the paths in a node's private layer that were written for this host and are
	// unchanged. They are not sent to the other host, which writes its own.
	HostSpecificFiles(n *spec.Node) []string
	// Receive makes a stopped node from layer, the node's private layer on the other host, which
	// has the form described at Layered.Private. The mark m is how far the node had come there. If
	// resumes is set, Receive records that the node must be started again.
	Receive(ctx context.Context, n *spec.Node, layer string, m Progress, resumes bool) error
}

// An Idmapper is an engine whose nodes see files of the host, but with user ids of their own.
type Idmapper interface {
	// Idmap returns the host's id of the node's root. The node's other ids follow it.
	Idmap(ref Ref) (first int, err error)
}

// A NetNamespacer is an engine whose running nodes have network namespaces.
type NetNamespacer interface {
	// NetNamespace returns the file of a node's network namespace, or "" if the node does not run.
	NetNamespace(ref Ref) string
}

// A Sweeper is an engine that may leave something behind when the program is killed.
type Sweeper interface {
	// Sweep ends what a killed run of a site left running, and removes what it left half made. Only
	// the holder of the site's lock may call it.
	Sweep(ctx context.Context, site string) error
}

// An Injector is an engine that can change the files of a stopped node, so that it boots with them.
type Injector interface {
	// Inject writes files.
	Inject(ctx context.Context, ref Ref, files ...host.File) error
	// Disable keeps systemd units from starting when the node boots, as systemctl disable does.
	// Units that are not enabled stay so.
	Disable(ctx context.Context, ref Ref, units ...string) error
}

// A Remounter is an engine that can change which volumes a running node sees. It has
// Capabilities.Remount.
type Remounter interface {
	// Remount makes the volumes of the spec, and no others, visible to a running node. A volume is
	// recorded before it is mounted, and stays recorded until it is unmounted. So the record never
	// lists too few volumes, however the run ends. A volume that a process still uses stays
	// mounted, and Remount returns a Failed problem that names the process.
	Remount(ctx context.Context, n *spec.Node) error
}

// A Freezer is an engine that can freeze all processes of a running node.
type Freezer interface {
	// Freeze returns when all processes of the node are frozen. It leaves a frozen node alone.
	Freeze(ctx context.Context, ref Ref) error
	// Thaw lets the processes continue. It leaves a node alone that is not frozen or does not run.
	Thaw(ctx context.Context, ref Ref) error
}

// A Flusher is a Freezer whose nodes cache file changes in memory of their own. Writing them takes
// a moment, so all nodes do it before the first one is frozen.
type Flusher interface {
	// Flush lets a running node write its cached changes, as far as it can. A power cut would lose
	// the rest, too.
	Flush(ctx context.Context, ref Ref)
}

// A Layered engine stores what a node has written outside volumes in a directory of the host. The
// directory is the upper directory of an overlayfs, in which deleted files are character devices
// 0:0 (see overlayfs.rst of the kernel). Files have the owners that the node sees.
type Layered interface {
	Private(ref Ref) (dir string)
	// Fill replaces the private layer of a node that has just been made and has never run.
	Fill(ref Ref, layer string) error
}

// A RootOpener is an engine that gives the host access to the files of a running node without running
// anything in it.
type RootOpener interface {
	// OpenRoot opens the root of a running node with the node's own mounts. What the caller writes
	// there is as if a process of the node had written it. The owners of files are those that the
	// host sees, see Idmapper.
	OpenRoot(ref Ref) (*tree.Root, error)
}

// A ConsoleProvider engine has nodes with a serial console.
type ConsoleProvider interface {
	Console(ref Ref) host.Console
}

// A ScreenProvider engine may have nodes with screens. A node without one returns an Unable problem.
type ScreenProvider interface {
	Screen(ref Ref) host.Screen
}

// A MemoryPoolProvider engine takes the memory of its nodes from a pool that is separate from the host's
// memory.
type MemoryPoolProvider interface {
	// Pool describes the pool. It returns nil if the host does not report one or runs no nodes of
	// the engine.
	Pool(ctx context.Context) *observe.MemoryPool
}

// A CgroupProvider engine keeps the processes of a node in a control group of the host. The group has the
// same name in every hierarchy.
type CgroupProvider interface {
	Cgroup(ref Ref) (path string) // relative to the root of a hierarchy
}

// A LiveUpgrader is an engine that can move a running node into newer versions of the host's programs,
// such as QEMU.
type LiveUpgrader interface {
	// LiveUpgrade moves a running node into the programs that are now installed on the host. The node's
	// processes, memory and connections survive, and only pause for a moment. If it fails, the node
	// continues in the old programs.
	LiveUpgrade(ctx context.Context, ref Ref) (*LiveUpgradeResult, error)
}

// A MemorySaver is an engine that can save the memory of running nodes and resume them from it.
type MemorySaver interface {
	// SaveMemory writes the memory of a frozen node to a new file that only root can read. The node
	// stays frozen until Thaw.
	SaveMemory(ctx context.Context, ref Ref, file string) error
	// ResumeFrom makes the next Start of a stopped node resume from such a file instead of booting, or
	// boot again if file is "".
	ResumeFrom(ref Ref, file string) error
}

// A LiveUpgradeResult is the result of LiveUpgrade.
type LiveUpgradeResult struct {
	Downtime time.Duration // how long the node stood still
	Took     time.Duration // the whole duration of LiveUpgrade
	Bytes    int64         // how much was transferred from the old program to the new one
}

// A Ref names a node on a host.
type Ref struct {
	Site string
	ID   int
	Name string
}

// NotRunning returns the problem that an operation needs a running node. It is an ordinary failure
// rather than a Surprise, because a new plan would not help. The node may have run when the plan was
// made, and have stopped since.
func NotRunning(ref Ref) error {
	return problem.New(problem.Failed, "node %s does not run", ref.Name).At(ref.Site).Try("orrery up %s", ref.Name)
}

// RefOf returns the Ref of a specified node.
func RefOf(n *spec.Node) Ref { return Ref{n.Site, n.ID, n.Name} }

// A Progress records how far a node has come.
type Progress struct {
	Configured bool
	Config     spec.Config // as applied to the node
	Proven     string      // digest of the health checks passed last
	ProvenAt   time.Time   // when they were passed
	Active     bool        // what only a live node does has been done, or may have been
}
