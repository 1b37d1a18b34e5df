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
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/path"
	"orrery/internal/lane"
	"orrery/internal/observe"
	"orrery/internal/problem"
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

// A fault is an error on its way.
type fault struct {
	Problems []trouble `json:"problems,omitempty"`
	Run      *mishap   `json:"run,omitempty"`
	Gone     bool      `json:"gone,omitempty"` // fs.ErrNotExist
	Cut      bool      `json:"cut,omitempty"`  // lane.ErrCut
}

type trouble struct {
	Kind  problem.Kind `json:"kind"`
	What  string       `json:"what"`
	Where string       `json:"where,omitempty"`
	Cure  string       `json:"cure,omitempty"`
	Cause string       `json:"cause,omitempty"`
}

// A mishap is a command that has not succeeded.
type mishap struct {
	Place   string   `json:"place"`
	Command []string `json:"command"`
	Status  int      `json:"status"`
	Output  string   `json:"output,omitempty"`
	Cause   string   `json:"cause,omitempty"`
}

// faultOf takes an error apart.
func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	f := &fault{Gone: errors.Is(err, fs.ErrNotExist), Cut: errors.Is(err, lane.ErrCut)}
	var run *host.RunError
	var p *problem.Problem
	if errors.As(err, &run) && !errors.As(err, &p) {
		f.Run = &mishap{run.Place, run.Command, run.Status, run.Output, text(run.Err)}
		return f
	}
	for _, p := range problem.All(err) {
		t := trouble{p.Kind, p.What, p.Where, p.Cure, text(p.Err)}
		if full := unix.ENOSPC.Error(); p.Cure == "" && problem.DiskFull(err) && (strings.Contains(t.What, full) || strings.Contains(t.Cause, full)) {
			t.fill()
		}
		f.Problems = append(f.Problems, t)
	}
	return f
}

// fill says of the trouble that it comes from a full disk, which at the other end is another's.
func (t *trouble) fill() {
	if t.Cause != "" {
		t.What += ": " + t.Cause
	}
	t.Kind, t.What, t.Cause = problem.Unable, "its disk is full", t.What
	t.Cure = "make room there, such as by orrery snapshot rm, orrery release prune or orrery image gc, and run the same command again"
}

// known gives a kind that a helper has said, if it is one of those with which something ends that did not succeed. It becomes an exit status, of which 0 would be success.
func known(k problem.Kind) problem.Kind {
	if k >= problem.Failed && k <= problem.Refused || k == problem.Reverted || k == problem.HalfWay || k == problem.Interrupted {
		return k
	}
	return problem.Failed
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// err puts it together again: with all that was said of it, and what callers tell it by.
func (f *fault) err() error {
	if f == nil {
		return nil
	}
	err := f.told()
	var marks []error
	if f.Gone {
		marks = append(marks, fs.ErrNotExist)
	}
	if f.Cut {
		marks = append(marks, lane.ErrCut)
	}
	switch {
	case len(marks) == 0 && err == nil:
		return problem.New(problem.Failed, "it failed, and does not say why")
	case len(marks) == 0:
		return err
	case err == nil:
		return marks[0]
	}
	return &marked{err, marks}
}

// A marked error is one that has come from elsewhere and is still what it was there, for errors.Is.
type marked struct {
	error
	is []error
}

func (m *marked) Unwrap() error        { return m.error }
func (m *marked) Is(target error) bool { return slices.Contains(m.is, target) }

// told gives what was said, or nil.
func (f *fault) told() error {
	if f.Run != nil {
		e := &host.RunError{Place: f.Run.Place, Command: slices.Clone(f.Run.Command), Status: f.Run.Status, Output: f.Run.Output}
		if f.Run.Cause != "" {
			e.Err = errors.New(f.Run.Cause)
		}
		return e
	}
	var all problem.List
	for _, t := range f.Problems {
		p := problem.New(known(t.Kind), "%s", t.What).At(t.Where)
		if t.Cause != "" {
			p = p.Because(errors.New(t.Cause))
		}
		if t.Cure != "" {
			p = p.Try("%s", t.Cure)
		}
		all = append(all, p)
	}
	if len(all) == 1 {
		return all[0]
	}
	return all.OrNil()
}
