package plan

import (
	"fmt"
	"time"

	"orrery/internal/observe"
	"orrery/internal/site/inventory"
	"orrery/internal/site/spec"
)

// A Kind says what a step does.
type Kind string

// The kinds of steps, in the order in which they come for one node.
const (
	PrepareHost Kind = "prepare" // kernel settings that containers in number need
	BuildLayer  Kind = "build"   // a base image or role layer into the host's store
	FetchLayer  Kind = "fetch"   // one that other hosts have, from those
	MakeNetwork Kind = "network" // a bridge with its address and rules
	BeginBatch  Kind = "batch"   // nothing is done; nodes of the batch wait for it, and it for the batches before
	// what nodes know of one another: hosts, inventory, host keys; the former ones are kept aside
	// until the run has succeeded
	WriteNames Kind = "names"
	CreateNode Kind = "create" // a node, stopped
	// a node by one of the same identity with other layers; the old private layer is kept until the
	// run has succeeded
	ReplaceNode   Kind = "replace"
	ReshapeNode   Kind = "reshape"   // interfaces, mounts or privileges of a stopped node
	LimitNode     Kind = "limit"     // limits, of a running node too
	StartNode     Kind = "start"     // a node that is stopped
	ConfigureNode Kind = "configure" // apply the roles on the node
	MendNode      Kind = "mend"      // put right what of a running node has drifted
	CheckNode     Kind = "check"     // wait until the node's health checks pass
	RenewNode     Kind = "renew"     // a running virtual machine goes on in the programs that the host has now
	StopNode      Kind = "stop"
	KillNode      Kind = "kill" // a node that has nothing to save is not shut down in order
	DestroyNode   Kind = "destroy"
	ForgetNames   Kind = "forget" // what WriteNames wrote
	RemoveNetwork Kind = "unnetwork"
	RemoveVolume  Kind = "unvolume"
	RestoreHost   Kind = "restore" // what PrepareHost changed
	RestoreNode   Kind = "unreplace"
	RestoreNames  Kind = "unnames"     // what WriteNames replaced is put back
	RevertNode    Kind = "unconfigure" // the files of a node as they were before this run

	// The steps of a switch from one release to another.
	RetireNode Kind = "retire" // a live node stops what only a live node does and lets go of its exclusive volumes
	// a node in quarantine stops the services of its exclusive volumes and takes these in place of
	// their copies
	TakeVolumes   Kind = "take"
	ReturnVolumes Kind = "return" // and back
	// the links of all nodes of the set, in one batch: to the live networks, or into quarantine
	MoveLinks Kind = "move"
	// a node starts the services of its exclusive volumes and does what only a live node does
	ActivateNode  Kind = "activate"
	CommitSwitch  Kind = "commit" // the host takes down which releases are live
	ForgetRelease Kind = "forget-release"

	// The steps of a node's move from one host to another, the peer. Until GiveNode it is the node of
	// the one that it leaves, afterwards of the one that is to receive it.
	CopyNode    Kind = "copy"    // what it has written, while it runs; again and again, until little is left
	SendNode    Kind = "send"    // the rest, when it stands still
	GiveNode    Kind = "give"    // the host that it leaves takes down that it is another's, and starts it no more
	ReceiveNode Kind = "receive" // what has come becomes the node, stopped
	LeaveNode   Kind = "leave"   // what was kept of it on the host that it has left is removed
	ReclaimNode Kind = "reclaim" // the host that has given it has it again: the other one has dropped it
	DropNode    Kind = "drop"    // what has come of it is removed
)

// A Step is one item of a plan: what is done, to what, why, and what it disturbs.
type Step struct {
	N        int      `json:"n"` // its place in the plan
	Kind     Kind     `json:"kind"`
	Host     string   `json:"host"`
	Subject  string   `json:"subject"` // the node, network, layer or volume
	Reason   string   `json:"reason"`
	Disturbs []string `json:"disturbs,omitempty"` // nodes that do not answer for a while, or lose what they wrote
	Needs    []int    `json:"needs,omitempty"`    // steps that come before
	Undo     string   `json:"undo"`               // how it is taken back; "": it cannot be, or need not be
	Batch    int      `json:"batch,omitempty"`    // of Plan.Batches, in which its node is; 0: in none

	// What follows is for those who do the step, and no part of what users are shown of a plan. Encode has it.

	Node    *spec.Node    `json:"-"` // as it shall be
	Was     *spec.Node    `json:"-"` // as it was
	Network *spec.Network `json:"-"`
	Layer   *spec.Layer   `json:"-"`
	Path    string        `json:"-"` // of a volume

	// of FetchLayer: hosts that have it, or will when the steps are done that it needs
	Sources []string `json:"sources,omitempty"`
	// of FetchLayer: a host that fetches it, too, and gives it on as it comes; "": none
	After string `json:"after,omitempty"`

	Settings map[string]string `json:"settings,omitempty"` // of the host's kernel, with the values that they shall have

	Drift []observe.Drift `json:"drift,omitempty"` // of MendNode
	Moves []Move          `json:"-"`               // of MoveLinks
	// of MoveLinks: when, by the clock of its host, as other hosts do the same then; zero: at once
	At          time.Time         `json:"-"`
	Releases    *observe.Releases `json:"-"` // of CommitSwitch: as they shall be
	WasReleases *observe.Releases `json:"-"`
	Release     int               `json:"release,omitempty"` // of ForgetRelease

	Restarts bool          `json:"-"` // of StopNode and KillNode: the plan starts the node again
	Timeout  time.Duration `json:"-"` // of StopNode: for shutting down, or 0 for DefaultStopTimeout

	// of a move: the other host; of StopNode, too, if the node is to run there again
	Peer string `json:"peer,omitempty"`
	// of what was sent, as the host says that has given it; "": it is asked when the step is done
	Sum        string `json:"-"`
	Runs       bool   `json:"-"` // of ReceiveNode: the node ran before, and is to run again,
	Configured bool   `json:"-"` // and how far it has come
	Active     bool   `json:"-"`

	WasNetwork *spec.Network `json:"-"` // nil: there was none
	Names      string        `json:"-"` // digest, as it shall be
	WasNames   string        `json:"-"` // digest; "": there were none

	// Packed are the parts of the site that doing the step takes; a Packer puts them in.
	Packed `json:"-"`
}

// A Move takes the links of a node from where they were to where they shall be.
type Move struct{ Was, Is *spec.Node }

// String returns the step on one line: "node receptor2: configure: role files changed".
func (s *Step) String() string {
	return fmt.Sprintf("%s: %s: %s", s.Title(), s.Kind, s.Reason)
}

// Title names what the step is about.
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

// doing says of each kind of step what is done, but for a batch, which says who is in it.
var doing = map[Kind]string{
	PrepareHost: "preparing", BuildLayer: "building", FetchLayer: "fetching", MakeNetwork: "making",
	WriteNames: "writing the names on", CreateNode: "creating", ReplaceNode: "replacing",
	ReshapeNode: "reshaping", LimitNode: "limiting", StartNode: "starting", ConfigureNode: "configuring",
	CheckNode: "checking", StopNode: "stopping",
	KillNode: "killing", DestroyNode: "destroying", ForgetNames: "removing the names from", RemoveNetwork: "removing",
	RemoveVolume: "removing",
	RestoreHost:  "restoring", RestoreNode: "restoring", RestoreNames: "restoring the names on",
	RevertNode: "restoring the files of",
	RetireNode: "retiring", TakeVolumes: "giving its volumes to", ReturnVolumes: "giving copies of its volumes to",
	MoveLinks:    "moving the links of",
	ActivateNode: "activating", MendNode: "mending", RenewNode: "renewing", CommitSwitch: "recording",
	ForgetRelease: "removing",
	CopyNode:      "copying", SendNode: "sending the rest of", GiveNode: "giving away", ReceiveNode: "receiving",
	LeaveNode: "removing what was left of", ReclaimNode: "taking back",
	DropNode: "removing what came of",
}

// Doing says what is done while the step is under way: "building layer debian + portal".
func (s *Step) Doing() string {
	if s.Kind == BeginBatch {
		return s.Title() + ": " + s.Reason
	}
	return doing[s.Kind] + " " + s.Title()
}

// ForNode reports whether the step is about one node.
func (s *Step) ForNode() bool { return s.Node != nil || s.Was != nil }

// Packed is what of the site a step has with it, so that whoever does it need not have the site.
type Packed struct {
	Duties *spec.Duties     // what the roles of the node do on it; nil: the node is not declared any more
	Tell   *inventory.Names // what nodes are told of one another
}
