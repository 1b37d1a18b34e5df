package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/whohas"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/observe/drill"
	"orrery/internal/problem"
	"orrery/internal/rehearsal"
	"orrery/internal/site/spec"
)

// Times of a drill.
const (
	askInterval     = 20 * time.Millisecond
	answerTimeout   = 10 * time.Second // for answers of one machine alone, before the fault and after it
	takeoverTimeout = 30 * time.Second
	settleTime      = 2500 * time.Millisecond // after a takeover, and after the holder has come back
	lookBack        = time.Second             // who has answered in this time answers now
)

// Drill does something to the node that holds the address of a service, measures how long a client gets no
// answer, and puts the node back even if ctx ends. A node that it has stopped stays so.
func (h nodeHost) Drill(ctx context.Context, r drill.Request) (drill.Result, error) {
	d := &drillRun{nodeHost: h, Request: r, result: drill.Result{Service: r.Service, Fault: r.Fault, At: time.Now()}}
	if err := d.find(ctx); err != nil {
		return d.result, err
	}
	d.result.Holder, d.result.Client = r.Holder.Name, d.client.name
	watching, end := context.WithCancel(ctx)
	defer end()
	if err := d.watch(); err != nil {
		return d.result, err
	}
	defer d.asker.Close()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		d.asker.Run(watching, askInterval)
	}()
	defer func() { // before the asker is closed
		end()
		<-asked
	}()
	go d.prober.Run(watching)
	if err := d.awaitHolder(ctx); err != nil {
		return d.result, err
	}
	return d.result, d.carryOut(ctx)
}

// A drillRun is a drill under way.
type drillRun struct {
	nodeHost
	drill.Request
	nic    spec.NIC
	engine engine.Engine
	client drillClient
	asker  *whohas.Asker
	prober *rehearsal.Prober
	result drill.Result
}

// A drillClient is the place from which the address is asked.
type drillClient struct {
	whohas.Client
	name string // of the node, or "" for the host
}

// find finds the holder's link and a client.
func (d *drillRun) find(ctx context.Context) (err error) {
	if d.Holder == nil || !slices.Contains(drill.Faults, d.Fault) || d.Holder.Site != d.Key {
		return problem.New(problem.Usage, "the drill %q is not known", d.Fault)
	}
	i := slices.IndexFunc(d.Holder.NICs, func(nic spec.NIC) bool { return nic.Network == d.Network })
	if i < 0 || !slices.Contains(d.Holder.NICs[i].MovingAddresses(), d.Address) {
		return problem.New(problem.Failed, "node %s cannot have the address %s", d.Holder.Name, d.Address).Try("orrery up")
	}
	d.nic = d.Holder.NICs[i]
	if d.engine, err = d.SiteState.engine(d.Holder); err != nil {
		return err
	}
	if _, ok := d.engine.(engine.Freezer); !ok && d.Fault == drill.Freeze {
		return problem.New(problem.Unable, "engine %s cannot freeze node %s", d.Holder.Engine, d.Holder.Name).
			Try("use another fault: --fault kill")
	}
	nodes, err := d.List(ctx)
	if err != nil {
		return err
	}
	// A node of the service answers itself when it takes over, so any other client is better.
	slices.SortStableFunc(nodes, func(a, b observe.Node) int { return cmp.Compare(d.rank(&a), d.rank(&b)) })
	for i := range nodes {
		if c, ok := d.clientOn(&nodes[i]); ok {
			d.client = c
			return nil
		}
	}
	if c, ok := clientOfBridge(d.nic); ok {
		d.client = c
		return nil
	}
	return problem.New(problem.Unable, "host %s has no client on network %s that could ask for %s", d.Name, d.Network,
		d.Address).Try("start a container on the network that is no node of the service, or give the network a gateway")
}

// rank returns 1 for the nodes of the service, and 0 for others.
func (d *drillRun) rank(n *observe.Node) int {
	for _, nic := range n.NICs {
		if d.Members[nic.MAC] != "" {
			return 1
		}
	}
	return 0
}

// clientOn returns a node as a client, if it can be one.
func (d *drillRun) clientOn(n *observe.Node) (c drillClient, ok bool) {
	spaces, ok := d.Engines[n.Engine].(engine.NetNamespacer)
	if !ok || n.State != observe.Running || n.Staged || d.rank(n) == 1 {
		return c, false
	}
	for _, nic := range n.NICs {
		if nic.Network == d.Network && nic.Bridge == d.nic.Bridge {
			c = drillClient{whohas.Client{Space: spaces.NetNamespace(engine.RefOf(&n.Node)), Link: nic.Name,
				Address: nic.Address.Addr()}, n.Name}
			return c, c.Space != ""
		}
	}
	return c, false
}

// clientOfBridge returns the host as a client, if it has an address on the bridge.
func clientOfBridge(nic spec.NIC) (c drillClient, ok bool) {
	bridge, err := net.InterfaceByName(nic.Bridge)
	if err != nil {
		return c, false
	}
	all, err := bridge.Addrs()
	if err != nil {
		return c, false
	}
	for _, one := range all {
		if p, err := netip.ParsePrefix(one.String()); err == nil && p.Addr().Is4() && nic.Address.Contains(p.Addr()) {
			return drillClient{Client: whohas.Client{Space: "/proc/self/ns/net", Link: nic.Bridge, Address: p.Addr()}}, true
		}
	}
	return c, false
}

// watch opens what asks for the address.
func (d *drillRun) watch() error {
	space, err := os.Open(d.client.Space)
	if err != nil {
		return err
	}
	defer space.Close()
	d.prober, err = rehearsal.NewProber(space, cmp.Or(d.client.name, "host"),
		[]rehearsal.Target{{Node: "service " + d.Service, Address: d.Address}})
	if err != nil {
		return err
	}
	d.asker, err = whohas.Open(d.client.Client, d.Address)
	return err
}

// awaitHolder waits until the holder, and no other machine, has answered for some time.
func (d *drillRun) awaitHolder(ctx context.Context) error {
	for began := time.Now(); ; {
		if err := host.Sleep(ctx, lookBack); err != nil {
			return err
		}
		got := d.answering()
		if len(got) == 1 && got[0] == d.nic.MAC && len(d.prober.Views()) == 1 {
			return nil
		}
		if time.Since(began) > answerTimeout {
			return problem.New(problem.Failed, "%s should answer for %s, but %s", d.Holder.Name, d.Address, answerers(d.names(got)))
		}
	}
}

// answering returns the hardware addresses of the machines that answer now.
func (d *drillRun) answering() []string { return d.asker.Since(time.Now().Add(-lookBack)) }

func answerers(names []string) string {
	if len(names) == 0 {
		return "nothing answers"
	}
	return fmt.Sprintf("%v answer", names)
}

// names returns the nodes of the service with hardware addresses, and others as they are.
func (d *drillRun) names(macs []string) (names []string) {
	for _, mac := range macs {
		names = append(names, cmp.Or(d.Members[mac], mac))
	}
	return names
}

// carryOut does what was asked, and measures.
func (d *drillRun) carryOut(ctx context.Context) (err error) {
	began := time.Now()
	back, err := d.fault(ctx)
	if err != nil {
		return errors.Join(err, back())
	}
	next, waited := d.awaitTakeover(ctx, began)
	ended := time.Now()
	if err := errors.Join(waited, back()); err != nil {
		return err
	}
	if d.Fault == drill.Freeze || d.Fault == drill.Cut {
		if err := host.Sleep(ctx, settleTime); err != nil {
			return err
		}
	}
	if err := d.awaitOne(ctx); err != nil {
		return err
	}
	d.measure(began, ended, next)
	return nil
}

// awaitOne waits until one machine, and no other, has answered for some time. Once the holder is back, both or
// none may answer for a few advertisements, which is part of what is measured.
func (d *drillRun) awaitOne(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < answerTimeout; {
		if len(d.answering()) == 1 {
			return nil
		}
		if err := host.Sleep(ctx, askInterval); err != nil {
			return err
		}
	}
	return nil
}

// fault does something to the holder, and returns how to put it back. The function may be called in any case.
func (d *drillRun) fault(ctx context.Context) (back func() error, err error) {
	apart := context.WithoutCancel(ctx)
	ref := engine.RefOf(d.Holder)
	switch d.Fault {
	case drill.Freeze:
		freezer := d.engine.(engine.Freezer)
		letGo := func() {}
		if d.Guard != nil {
			if letGo, err = d.Guard(d.Holder); err != nil {
				return func() error { return nil }, err
			}
		}
		return func() error {
			err := freezer.Thaw(apart, ref)
			if err == nil {
				letGo() // otherwise the guard thaws it when this process ends
			}
			return err
		}, freezer.Freeze(ctx, ref)
	case drill.Cut:
		if err := host.WriteJSON(d.cutFile(), 0o600, d.nic.HostIfName); err != nil {
			return func() error { return nil }, err
		}
		return d.join, ends.SetUp(d.nic.HostIfName, false)
	}
	d.result.Stopped = true
	ended := make(chan error, 1)
	go func() {
		stop, cancel := context.WithTimeout(apart, stopTimeout)
		if d.Fault == drill.Kill {
			stop, cancel = context.WithDeadline(apart, time.Now())
		}
		defer cancel()
		ended <- d.engine.Stop(stop, ref)
	}()
	return func() error { return <-ended }, nil
}

// stopTimeout is how long a node may take to shut down in a drill.
const stopTimeout = 2 * time.Minute

// cutFile is the record of a link that a drill has taken down, for Sweep.
func (p *SiteState) cutFile() string { return filepath.Join(p.Dirs.Site(p.Key), "cut.json") }

// join takes the link up that a drill has taken down, if there is one. The link may be gone with its node.
func (p *SiteState) join() error {
	link, err := host.ReadJSON[string](p.cutFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && ends.IsOwn(link) && ends.Exists(link) {
		if err := ends.SetUp(link, true); err != nil && ends.Exists(link) {
			return err
		}
	}
	return os.Remove(p.cutFile())
}

// awaitTakeover waits until a machine other than the holder answers, and some time after that. It returns when
// the first answer came, or the zero time if none did.
func (d *drillRun) awaitTakeover(ctx context.Context, began time.Time) (first time.Time, err error) {
	for time.Since(began) < takeoverTimeout {
		if err := host.Sleep(ctx, askInterval); err != nil {
			return first, err
		}
		for _, a := range d.asker.Answers() {
			if a.At.After(began) && a.MAC != d.nic.MAC {
				return a.At, host.Sleep(ctx, settleTime)
			}
		}
	}
	return first, nil
}

// measure fills in the result. The fault lasted from began to ended, and the first answer of another machine
// came at next.
func (d *drillRun) measure(began, ended, next time.Time) {
	r := &d.result
	for _, view := range d.prober.Views() {
		for _, o := range view.Outages {
			took := o.Until.Sub(o.From).Seconds()
			if o.Until.Before(began) {
				continue
			}
			if o.From.Before(ended) {
				r.Gap = max(r.Gap, took)
			} else {
				r.Return = max(r.Return, took)
			}
		}
	}
	d.measureHolders(began, next)
	if d.Fault == drill.Freeze && r.Next != "" {
		// the kernel answers for the frozen node, but none of its programs does
		r.Gap = max(r.Gap, r.Takeover)
	}
}

// measureHolders fills in who answered for the address.
func (d *drillRun) measureHolders(began, next time.Time) {
	r := &d.result
	r.Answers = d.names(d.answering())
	if next.IsZero() {
		return
	}
	r.Takeover = next.Sub(began).Seconds()
	for _, a := range d.asker.Answers() {
		switch {
		case a.At.Before(next):
		case a.MAC == d.nic.MAC && len(r.Answers) > 0 && r.Answers[0] != d.Holder.Name:
			r.Both = a.At.Sub(next).Seconds()
		case a.MAC != d.nic.MAC && r.Next == "":
			r.Next = cmp.Or(d.Members[a.MAC], a.MAC)
		}
	}
}
