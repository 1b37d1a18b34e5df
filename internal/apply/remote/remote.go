// Package remote is a host at the other end of a connection: there, the same program runs as a helper, which does what this end asks.
//
// Serve is the helper: it gives what a Machine has to whoever is at the other end of a connection. Open is that other end: it gives a Link, whose Host is an apply.Host like that of this
// machine, and nothing more. All deciding stays at this end; the helper knows no site but by its key, and has nothing that it keeps but what a host has on its disk. The lock of a
// site is held by the helper, and it ends with the connection, as does all that the helper was asked to do.
//
// What goes to and fro is as it is in apply.Host: plain data as JSON, a step as plan.Encode has it. Each call is a talk of package wire, on a stream of its own; the ways into nodes are
// those of wire.
package remote

import (
	"encoding/json"
	"time"


	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/path"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

// What talks are about: one for each method of apply.Host that is asked over there, and the first one of a session.
const (
	toGreet    = "greet"
	toHold     = "hold"
	toSweep    = "sweep"
	toObserve  = "observe"
	toDrain    = "drain"
	toLook     = "drained"
	toClear    = "clear"
	toMark     = "mark"
	toOutfit   = "outfit"
	toNodes    = "nodes"
	toProbe    = "probe"
	toDescribe = "describe"
	toDo       = "do"
	toSettle   = "settle"
	toList     = "left"
	toRecall   = "took"
	toReturn   = "keep way back"
	toBoot     = "keep boot"
	toRead     = "releases"
	toWrite    = "set releases"
	toCopy     = "copy releases"
	toCompare  = "editions"
	toFetch    = "edition"
	toKeep     = "keep edition"
	toReceive  = "receive"
	toReveal   = "secret"
	toSeal     = "keep secret"
	toTell     = "twins"
	toRegister = "keep twin"
	toForget   = "forget twin"
	toFill     = "fill twin"
	toLay      = "lay volume"

	toShelve   = "snapshots"
	toWeigh    = "size of snapshot"
	toFindCut  = "restoring"
	toCapture  = "capture"
	toShelveIt = "keep snapshot"
	toDiscard  = "remove snapshot"
	toPutBack  = "put back"

	toGiveBackup = "give backup"
	toFindBackup = "find of backup"
	toLayBackup  = "lay down backup"
	toSeePart    = "part of restore"
	toAdvance    = "advance restore"

	toMeasureAll = "volumes"
	toMirror     = "mirror"
	toVerify     = "verify"
	toInherit    = "adoptions"
	toAdopt      = "adopt"
	toSchedule   = "keep mirrors"

	toTryOut = "experiment"

	toStock = "layers"
	toProve = "verify layer"
	toClean = "remove layers"

	toNote     = "journal"
	toRecount  = "entries"
	toShow     = "log"
	toMeasure  = "usage"
	toSample   = "sample"
	toInspect  = "facts"
	toTry      = "ways"
	toKey      = "public key"
	mostOfALog = 64 << 10 // in one message

	mostOfAJournal = 64 << 20 // more than is kept of one
)

// mostToSay is how many bytes a host may say at once when it is asked about something: more than one has that keeps thousands of nodes, and what is not about all of its nodes is short.
func mostToSay(about string) int {
	switch about {
	case toObserve, toNodes, toProbe, toAdvance, toSeePart, toStock:
		return 16 << 20
	}
	return 1 << 20
}

// A place is which host of which site a call is about, and for the way into a node, which.
type place struct {
	Host string     `json:"host"`
	Key  string     `json:"key"`
	Node *spec.Node `json:"node,omitempty"`
}

// A question is the first message of a talk.
type question struct {
	place
	pass
	By      *host.Holder      `json:"by,omitempty"`
	Engines []string          `json:"engines,omitempty"`
	Nodes   []observe.Node    `json:"nodes,omitempty"`
	Look    apply.Look        `json:"look,omitempty"`
	Wants   []apply.Want      `json:"wants,omitempty"`
	Step    json.RawMessage   `json:"step,omitempty"`
	Done    []json.RawMessage `json:"done,omitempty"`
	Release *observe.Releases `json:"releases,omitempty"`
	Layers  []string          `json:"layers,omitempty"`
	Log     string            `json:"log,omitempty"`
	Back    *apply.WayBack    `json:"back,omitempty"`
	Boot    *apply.Boot       `json:"boot,omitempty"`
	Runs    int               `json:"runs,omitempty"`
	Edition int               `json:"edition,omitempty"`
	Secret  string            `json:"secret,omitempty"`
	Value   string            `json:"value,omitempty"` // of a secret
	Twin    *twin.Record      `json:"twin,omitempty"`
	Capture *apply.Capture    `json:"capture,omitempty"`
	Names   []string          `json:"names,omitempty"`
	Volumes *cellar           `json:"volumes,omitempty"`
	Before  *host.Sample      `json:"before,omitempty"`
	Ways    []path.Way        `json:"ways,omitempty"`
	Now     *host.Sample      `json:"now,omitempty"`
	Version string            `json:"version,omitempty"`
	Drain   *observe.Drain    `json:"drain,omitempty"`
	Origin  string            `json:"origin,omitempty"`
	Content string            `json:"content,omitempty"` // digest of a file, or of an edition

	Experiment *Experiment `json:"experiment,omitempty"`

	Editions []int `json:"editions,omitempty"`
}

// A word is a message of the helper: something on the way, or the result, or why there is none.
type word struct {
	passed
	Detail   string          `json:"detail,omitempty"` // of a step
	Waits    string          `json:"waits,omitempty"`  // for somebody else over there, such as who has a lock
	Want     *want           `json:"want,omitempty"`
	Progress *progress       `json:"progress,omitempty"`
	Bytes    []byte          `json:"bytes,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Fault    *fault          `json:"fault,omitempty"`
}

// A want is the question of the helper for what a step refers to and has not with it: the value of a secret, or a file that has some in it.
type want struct {
	Secret string           `json:"secret,omitempty"`
	Text   *spec.SecretText `json:"text,omitempty"`
}

// A given is the answer to it, with all values that are not to be shown.
type given struct {
	Value []byte            `json:"value,omitempty"`
	Known map[string]string `json:"known,omitempty"`
	Fault *fault            `json:"fault,omitempty"`
}

// Greeting is what a helper says of itself and of its machine.
type Greeting struct {
	Version  string    `json:"version"`
	Machine  string    `json:"machine"` // the same for any two names of one machine, and no two machines
	Hostname string    `json:"hostname"`
	Time     time.Time `json:"time"`
}
