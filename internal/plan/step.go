package plan

import (
	"cmp"
	"fmt"
	"time"

	"orrery/internal/observe"
	"orrery/internal/site/inventory"
	"orrery/internal/site/spec"
)

// A Kind is what a step does.
type Kind string

// The kinds of steps, in the order in which they occur for one node.
const (
	PrepareHost Kind = "prepare" // set kernel settings that many containers need
	BuildLayer  Kind = "build"   // put a base image or role layer into the host's store
	FetchLayer  Kind = "fetch"   // copy a layer from hosts that have it
	MakeNetwork Kind = "network" // make a bridge with its address and rules
	BeginBatch  Kind = "batch"   // does nothing itself: the batch's nodes wait for it, and it waits for earlier batches
	// Write what nodes know of one another: hosts, inventory and host keys. The former names are
	// kept until the run has succeeded.
	WriteNames Kind = "names"
	CreateNode Kind = "create" // create a node, stopped
	// Replace a node by one of the same identity with other layers. The old private layer is kept
	// until the run has succeeded.
	ReplaceNode   Kind = "replace"
	ReshapeNode   Kind = "reshape"   // change interfaces, mounts or privileges of a stopped node
	LimitNode     Kind = "limit"     // change limits, even of a running node
	StartNode     Kind = "start"     // start a stopped node
	ConfigureNode Kind = "configure" // apply the roles on the node
	RepairNode    Kind = "mend"      // repair the drift of a running node
	CheckNode     Kind = "check"     // wait until the node's health checks pass
	RenewNode     Kind = "renew"     // a running virtual machine switches to the programs that the host has now
	StopNode      Kind = "stop"
	KillNode      Kind = "kill" // end a node that has nothing to save without shutting it down
	DestroyNode   Kind = "destroy"
	ForgetNames   Kind = "forget" // remove what WriteNames wrote
	RemoveNetwork Kind = "unnetwork"
	RemoveVolume  Kind = "unvolume"
	RestoreHost   Kind = "restore" // undo PrepareHost
	RestoreNode   Kind = "unreplace"
	RestoreNames  Kind = "unnames"     // put back the names that WriteNames replaced
	RevertNode    Kind = "unconfigure" // put back the files that a node had before this run

	// The steps of a switch from one release to another.
	RetireNode Kind = "retire" // a live node stops its live-only work and releases its exclusive volumes
	// A node in quarantine stops the services of its exclusive volumes and uses the volumes instead
	// of their copies.
	TakeVolumes   Kind = "take"
	ReturnVolumes Kind = "return" // undo TakeVolumes
	// Move the links of all nodes of the set in one batch, to the live networks or into quarantine.
	MoveLinks Kind = "move"
	// A node starts the services of its exclusive volumes and its live-only work.
	ActivateNode  Kind = "activate"
	CommitSwitch  Kind = "commit" // the host records which releases are live
	ForgetRelease Kind = "forget-release"

	// The steps that move a node from one host to another, the peer. The node belongs to the host
	// that it leaves until HandOverNode, and to the receiving host afterwards.
	CopyNode     Kind = "copy"    // copy the node's data while it runs, repeatedly, until little is left
	SendNode     Kind = "send"    // copy the rest while the node is stopped
	HandOverNode Kind = "give"    // the host that it leaves records the new owner and never starts the node again
	ReceiveNode  Kind = "receive" // make the node from the received data, stopped
	CleanUpNode  Kind = "leave"   // remove what was kept on the host that the node has left
	ReclaimNode  Kind = "reclaim" // the host that gave the node owns it again, since the other host dropped it
	DiscardNode  Kind = "drop"    // remove the received data
)

// A Step is one item of a plan: what is done to what, why, and which nodes it disturbs.
type Step struct {
	N        int      `json:"n"` // position in the plan
	Kind     Kind     `json:"kind"`
	Host     string   `json:"host"`
	Subject  string   `json:"subject"` // the node, network, layer or volume
	Reason   string   `json:"reason"`
	Disturbs []string `json:"disturbs,omitempty"` // nodes that do not answer for a while or lose data
	Needs    []int    `json:"needs,omitempty"`    // steps that must be done before
	Undo     string   `json:"undo"`               // how it is undone, or "" if it cannot or need not be
	Batch    int      `json:"batch,omitempty"`    // number in Plan.Batches of the batch of its node, or 0 if in none

	// The fields below are for the host that does the step. Users do not see them in a plan, except
	// those with a JSON name. Encode includes them.

	Node    *spec.Node    `json:"-"` // desired
	Old     *spec.Node    `json:"-"` // current
	Network *spec.Network `json:"-"`
	Layer   *spec.Layer   `json:"-"`
	Path    string        `json:"-"` // of a volume

	// Sources are the hosts from which FetchLayer fetches: they have the layer, or will after
	// Needs.
	Sources []string `json:"sources,omitempty"`
	// After is a host that fetches the same layer and forwards it as it arrives, or "". For
	// FetchLayer.
	After string `json:"after,omitempty"`

	Settings map[string]string `json:"settings,omitempty"` // desired settings of the host's kernel

	Drift []observe.Drift `json:"drift,omitempty"` // for RepairNode
	Moves []Move          `json:"-"`               // for MoveLinks
	// At is when MoveLinks moves the links, by the clock of its host, because other hosts do the
	// same at that time. If zero, it moves them at once.
	At          time.Time         `json:"-"`
	Releases    *observe.Releases `json:"-"` // for CommitSwitch: desired
	OldReleases *observe.Releases `json:"-"`
	Release     int               `json:"release,omitempty"` // for ForgetRelease

	Restarts bool          `json:"-"` // for StopNode and KillNode: the plan starts the node again
	Timeout  time.Duration `json:"-"` // for StopNode: for shutting down, or 0 for DefaultStopTimeout

	// Peer is the other host of a move. StopNode has it if the node will run there again.
	Peer string `json:"peer,omitempty"`
	// Digest is the checksum of the sent data, from the host that gave the node. If it is "", the host
	// is asked when the step is done.
	Digest     string `json:"-"`
	Runs       bool   `json:"-"` // for ReceiveNode: the node ran before and will run again
	Configured bool   `json:"-"` // for ReceiveNode: the node was configured
	Active     bool   `json:"-"`

	OldNetwork *spec.Network `json:"-"` // nil if there was none
	Names      string        `json:"-"` // desired digest
	OldNames   string        `json:"-"` // former digest, or "" if there was none

	// Payload are the parts of the site that the step needs. A Packer adds them.
	Payload `json:"-"`
}

// A Move takes the links of a node from their current networks to the desired ones.
type Move struct {
	Old *spec.Node `json:"Was"`
	New *spec.Node `json:"Is"`
}

// String returns the step on one line: "node receptor2: configure: role files changed".
func (s *Step) String() string {
	return fmt.Sprintf("%s: %s: %s", s.Title(), s.Kind.Verb(), s.Reason)
}

// plain maps kinds of steps whose names only programs understand to the verbs that users read.
var plain = map[Kind]string{
	ReplaceNode: "recreate", ReshapeNode: "update", LimitNode: "update", RepairNode: "repair",
	RemoveNetwork: "remove", RemoveVolume: "delete", RestoreNode: "restore", RestoreNames: "restore",
	RevertNode: "restore", ForgetRelease: "remove", HandOverNode: "hand over", CleanUpNode: "clean up",
	DiscardNode: "discard",
}

// Verb returns the kind as users read it: the name of the kind, or a plain verb for it.
func (k Kind) Verb() string { return cmp.Or(plain[k], string(k)) }

// Title returns the name of what the step is about: "host sv1", "node web".
func (s *Step) Title() string {
	switch s.Kind {
	case PrepareHost, RestoreHost, WriteNames, RestoreNames, ForgetNames:
		return "host " + s.Host
	case BuildLayer, FetchLayer:
		return "layer " + s.Subject
	case MakeNetwork, RemoveNetwork:
		return "network " + s.Subject
	case RemoveVolume:
		return "volume " + s.Subject
	case BeginBatch:
		return "batch " + s.Subject
	case MoveLinks, CommitSwitch:
		return "set " + s.Subject
	case ForgetRelease:
		return "release " + s.Subject
	}
	return "node " + s.Subject
}

// verbs maps each kind of step, except BeginBatch, to a verb. A batch names its nodes instead.
var verbs = map[Kind]string{
	PrepareHost: "preparing", BuildLayer: "building", FetchLayer: "fetching", MakeNetwork: "creating",
	WriteNames: "writing the names of", CreateNode: "creating", ReplaceNode: "replacing",
	ReshapeNode: "updating", LimitNode: "limiting", StartNode: "starting", ConfigureNode: "configuring",
	CheckNode: "checking", StopNode: "stopping",
	KillNode: "killing", DestroyNode: "destroying", ForgetNames: "removing the names from", RemoveNetwork: "removing",
	RemoveVolume: "removing",
	RestoreHost:  "restoring", RestoreNode: "restoring", RestoreNames: "restoring the names of",
	RevertNode: "restoring the files of",
	RetireNode: "retiring", TakeVolumes: "mounting volumes on", ReturnVolumes: "mounting volume copies on",
	MoveLinks:    "moving the links of",
	ActivateNode: "activating", RepairNode: "repairing", RenewNode: "renewing", CommitSwitch: "recording",
	ForgetRelease: "removing",
	CopyNode:      "copying", SendNode: "sending the rest of", HandOverNode: "handing over", ReceiveNode: "receiving",
	CleanUpNode: "cleaning up", ReclaimNode: "reclaiming",
	DiscardNode: "removing the copy of",
}

// Doing returns what the step does, for progress output: "building layer debian + portal".
func (s *Step) Doing() string {
	if s.Kind == BeginBatch {
		return s.Title() + ": " + s.Reason
	}
	return verbs[s.Kind] + " " + s.Title()
}

// ForNode reports whether the step is about one node.
func (s *Step) ForNode() bool { return s.Node != nil || s.Old != nil }

// Payload is the part of the site that a step carries, so that its host does not need the site.
type Payload struct {
	Duties *spec.RoleActions   // what the node's roles do on it, or nil if the node is not declared any more
	Tell   *inventory.PeerInfo // what nodes know of one another
}
