package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/host/path"
	"orrery/internal/journal"
	"orrery/internal/jsonlimit"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/waits"
	"orrery/internal/wire"
)

// A Machine is what a helper gives to others.
type Machine interface {
	// Host gives the machine as a site with this key has it, which calls it by this name.
	Host(name, key string, secrets apply.Secrets) apply.Host
	// Inspect looks what the machine has that nodes need.
	Inspect() doctor.Facts
	// Try gives, for each way to another host, the size of the largest packet that came back from there; 0: none did.
	Try(ctx context.Context, ways []path.Way) []int
	// Outfit installs what nodes of some engines need and the machine does not have. It gives the packages, and says what it does.
	Outfit(ctx context.Context, engines []string, say func(string)) (packages []string, err error)
}

// mostWays is how many ways to other hosts one question may be about.
const mostWays = 1024

// Serve does on a machine what is asked along a connection, until that ends or is silent for too long. All that was under way has ended then.
func Serve(ctx context.Context, conn io.ReadWriteCloser, m Machine, self Greeting) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	heard := &vigil{ReadWriteCloser: conn, last: time.Now()}
	go heard.watch(ctx)
	err := wire.Serve(ctx, heard, &helper{machine: m, self: self, hosts: map[place]*lent{}})
	if ctx.Err() != nil || errors.Is(err, fs.ErrClosed) || errors.Is(err, net.ErrClosed) {
		return nil // that is how it ends
	}
	return err
}

// A vigil ends a connection on which nothing has come for long: whoever is at the other end asks for a sign of life every few seconds (wire.Demand), so he is gone, and a network that
// has failed in between does not say so. He must not keep the site's lock.
type vigil struct {
	io.ReadWriteCloser
	mutex sync.Mutex
	last  time.Time
}

// silence is how long nothing may come; time must be up twice, because a machine that stood still finds that much time has gone, and has not read yet what was sent.
var silence = 10 * time.Second // but in tests

func (v *vigil) Read(p []byte) (int, error) {
	n, err := v.ReadWriteCloser.Read(p)
	v.mutex.Lock()
	v.last = time.Now()
	v.mutex.Unlock()
	return n, err
}

func (v *vigil) watch(ctx context.Context) {
	tick := time.NewTicker(silence)
	defer tick.Stop()
	for quiet, before := 0, (time.Time{}); quiet < 2; quiet++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		v.mutex.Lock()
		last := v.last
		v.mutex.Unlock()
		if !last.Equal(before) {
			quiet, before = -1, last
		}
	}
	_ = v.Close()
}

// A helper has the hosts of a machine, as the sites that were asked about have it.
type helper struct {
	host.Local
	machine Machine
	self    Greeting
	mutex   sync.Mutex
	hosts   map[place]*lent
}

// lent is a host with the secrets that it borrows.
type lent struct {
	apply.Host
	secrets *borrowed
}

// of gives the host that is meant.
func (h *helper) of(p place) *lent {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	p.Node = nil
	if h.hosts[p] == nil {
		s := &borrowed{Keyring: secret.NewKeyring(&site.Site{Name: p.Key}, host.Dirs{})}
		h.hosts[p] = &lent{h.machine.Host(p.Host, p.Key, s), s}
	}
	return h.hosts[p]
}

// At gives the way into a node.
func (h *helper) At(where json.RawMessage) (host.Runner, error) {
	var p place
	if err := jsonlimit.Unmarshal(where, &p); err != nil {
		return nil, err
	}
	if p.Node == nil {
		return nil, errors.New("no node is meant")
	}
	return h.of(p).Runner(p.Node)
}

// Talk does what is asked.
func (h *helper) Talk(ctx context.Context, about string, with *wire.Caller) error {
	var q question
	if err := with.Hear(&q); err != nil {
		return err
	}
	ctx = waits.Telling(ctx, func(text string) { _ = with.Say(word{Waits: text}) })
	result, err := h.do(ctx, about, &q, with)
	if err != nil {
		return with.Say(word{Fault: faultOf(err)})
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return with.Say(word{Result: text})
}

func (h *helper) do(ctx context.Context, about string, q *question, with *wire.Caller) (any, error) {
	switch about {
	case toGreet:
		return h.greet(), nil
	case toInspect:
		return h.machine.Inspect(), nil
	case toTry:
		return h.machine.Try(ctx, q.Ways[:min(len(q.Ways), mostWays)]), nil
	case toOutfit:
		return h.machine.Outfit(ctx, q.Engines, func(text string) { _ = with.Say(word{Detail: text}) })
	case toTryOut:
		return nil, h.measure(ctx, q.Experiment, with)
	}
	on := h.of(q.place)
	ctx = asking(ctx, with)
	switch about {
	case toHold:
		return nil, on.hold(ctx, q, with)
	case toSweep:
		return nil, on.Sweep(ctx)
	case toObserve:
		return on.Observe(ctx, q.Engines)
	case toLook:
		return on.Drained(ctx)
	case toMark:
		return nil, on.Mark(ctx, q.Origin)
	case toClear:
		return on.Forget(ctx)
	case toDrain:
		return nil, on.SetDrained(ctx, q.Drain)
	case toKey:
		return on.PublicKey(ctx)
	case toNodes:
		there, err := on.Present(ctx, q.Look)
		return counted{there, faultOf(err)}, nil
	case toProbe:
		err := on.Probe(ctx, q.Nodes, q.Wants)
		drift := make([][]observe.Drift, len(q.Nodes))
		for i := range q.Nodes {
			drift[i] = q.Nodes[i].Drift
		}
		return drift, err
	case toDescribe:
		return on.Describe(ctx, q.Layers)
	case toDo:
		s, err := plan.Decode(q.Step)
		if err != nil {
			return nil, err
		}
		return nil, on.Do(ctx, s, func(text string) { _ = with.Say(word{Detail: text}) })
	case toSettle:
		done, err := apply.Decoded(q.Done)
		if err != nil {
			return nil, err
		}
		return nil, on.Settle(ctx, done)
	case toList:
		return on.Left(), nil
	case toRecall:
		s, err := plan.Decode(q.Step)
		if err != nil {
			return nil, err
		}
		return on.Took(s), nil
	}
	return on.record(ctx, about, q, with)
}

// record does what is about what the host has on record.
func (on *lent) record(ctx context.Context, about string, q *question, with *wire.Caller) (any, error) {
	switch about {
	case toRead:
		return on.ReadReleases(ctx)
	case toWrite:
		if q.Release == nil {
			return nil, errors.New("no releases are said")
		}
		return nil, on.WriteReleases(*q.Release)
	case toCopy:
		if q.Release == nil {
			return nil, errors.New("no releases are said")
		}
		return nil, on.CopyReleases(*q.Release)
	case toCompare:
		return on.Editions(ctx, q.Editions)
	case toFetch:
		in, err := on.Edition(ctx, q.Edition)
		if err != nil {
			return nil, err
		}
		return nil, send(in, with)
	case toKeep:
		return nil, on.KeepEdition(ctx, q.Edition, q.Content, &parts{with: with})
	case toReceive:
		return nil, on.Receive(ctx, q.Content, &parts{with: with})
	case toReveal:
		return on.Secret(ctx, q.Secret)
	case toSeal:
		return nil, on.KeepSecret(ctx, q.Secret, q.Value)
	case toReturn:
		if q.Back == nil {
			return nil, errors.New("no way back is said")
		}
		return nil, on.KeepWayBack(ctx, *q.Back)
	case toBoot:
		if q.Boot == nil {
			return nil, errors.New("no boot is said")
		}
		return nil, on.KeepBoot(ctx, *q.Boot)
	case toTell:
		return on.Twins(ctx)
	case toRegister:
		if q.Twin == nil {
			return nil, errors.New("no twin is said")
		}
		return nil, on.KeepTwin(ctx, *q.Twin)
	case toForget:
		return nil, on.ForgetTwin(ctx)
	case toNote:
		return nil, on.note(with)
	case toRecount:
		return on.recount(ctx, q.Runs, with)
	case toShow:
		return nil, on.show(ctx, q.Log, with)
	case toWord, toPassOut, toPassIn:
		return on.pass(ctx, about, q, with)
	case toSample, toMeasure:
		if len(q.Nodes) != 1 {
			return nil, errors.New("no node is meant")
		}
		if about == toSample {
			return on.Sample(&q.Nodes[0].Node), nil
		}
		if q.Before == nil || q.Now == nil {
			return nil, errors.New("samples are missing")
		}
		return on.Usage(ctx, &q.Nodes[0], *q.Before, *q.Now), nil
	case toShelve, toWeigh, toFindCut, toCapture, toShelveIt, toDiscard, toPutBack:
		return on.shelve(ctx, about, q, with)
	case toGiveBackup, toFindBackup, toLayBackup, toSeePart, toAdvance:
		return on.ferry(ctx, about, q, with)
	case toStock, toProve, toClean:
		return on.stock(ctx, about, q, with)
	case toFill, toLay, toMeasureAll, toMirror, toVerify, toInherit, toAdopt, toSchedule:
		return on.store(ctx, about, q, with)
	}
	return nil, unknown(about)
}

func unknown(about string) error {
	return problem.New(problem.Unable, "the helper on this host does not know %q", about).Try("install the same orrery on all machines that steer the site")
}

// counted are nodes, and what is wrong with the rest.
type counted struct {
	apply.Present
	Fault *fault `json:"fault,omitempty"`
}

// greet says who this is.
func (h *helper) greet() Greeting {
	g := h.self
	g.Time = time.Now()
	return g
}

// hold keeps the site's lock until the caller wants it no more, or is gone.
func (on *lent) hold(ctx context.Context, q *question, with *wire.Caller) error {
	by := host.Holder{}
	if q.By != nil {
		by = *q.By
	}
	by.Pid = os.Getpid() // that of the caller means nothing here
	letGo, err := on.Hold(ctx, by)
	if err != nil {
		return err
	}
	defer letGo()
	if err := with.Say(word{Detail: "held"}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// note writes entries of the journal as they come, and says of each that it is written.
func (on *lent) note(with *wire.Caller) error {
	j, err := on.Journal()
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // every entry has been written by then
	if err := with.Say(word{Detail: "open"}); err != nil {
		return err
	}
	for {
		var e entry
		if err := with.Hear(&e); err != nil {
			return nil //nolint:nilerr // no more come
		}
		if err := with.Say(word{Fault: faultOf(j.Add(e.Entry)), Detail: "noted"}); err != nil {
			return err
		}
	}
}

// recount sends the entries of the journal as its lines, and gives the numbers of those that cannot be read.
func (on *lent) recount(ctx context.Context, runs int, with *wire.Caller) ([]int, error) {
	all, damaged, err := on.Entries(ctx, runs)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewWriterSize(pieces{with}, mostOfALog)
	if err := journal.Print(lines, all); err != nil {
		return nil, err
	}
	if damaged == nil {
		damaged = []int{}
	}
	return damaged, lines.Flush()
}

// pieces sends what is written.
type pieces struct{ with *wire.Caller }

func (p pieces) Write(b []byte) (int, error) { return len(b), p.with.Say(word{Bytes: b}) }

// show sends a log.
func (on *lent) show(ctx context.Context, node string, with *wire.Caller) error {
	log, err := on.Log(ctx, node)
	if err != nil {
		return err
	}
	return send(log, with)
}

// parts are the pieces of an edition as they come.
type parts struct {
	with *wire.Caller
	left []byte
	end  bool
}

func (p *parts) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		if p.end {
			return 0, io.EOF
		}
		var next part
		if err := p.with.Hear(&next); err != nil {
			return 0, err
		}
		p.left, p.end = next.Bytes, next.End
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

// send sends what is read.
func send(log io.ReadCloser, with *wire.Caller) error {
	defer log.Close() //nolint:errcheck // it was only read
	piece := make([]byte, mostOfALog)
	for {
		n, err := log.Read(piece)
		if n > 0 {
			if err := with.Say(word{Bytes: piece[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
