package apply

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Steered is a host of a site, with the site beside it. The host itself knows no more of that than
// the key: each step is made whole before the host gets it, and what secrets steps refer to is
// resolved here.
type Steered struct {
	Host
	packer *pack.Packer // which all hosts of the fleet share: only the fleet changes it
	Name   string       // what the site calls it
	// what backups and lists call it; "": it is the only host of the site, and nothing needs to name
	// it
	Label   string
	Files   map[string]string // of this machine, by their digests, from which images of the site are made
	keys    *secret.Keyring
	told    map[string]bool // generated secrets of which it keeps a copy; keeping: while one is given to it
	keeping sync.Mutex

	marking sync.Mutex
	marked  string // whose its nodes are by its record, as far as that is known

	fleet *Fleet   // whose plan is carried out; nil: none is
	meets *meeting // with other hosts; nil: there are none
	ahead time.Duration

	lock  sync.Mutex
	lives *site.Site // what Live gave; nil: not yet, or other releases are live since
}

// Steer puts a site beside the host that it calls by a name. Open gives the host, which gets the
// values of secrets from here.
func Steer(name string, s *site.Site, dirs host.Dirs, open func(Secrets) Host) *Steered {
	h := &Steered{packer: pack.New(s, nil), Name: name, keys: secret.NewKeyring(s, dirs)}
	connect(h, open)
	Alone(h).Assembled()
	return h
}

// Beside returns another host of the same site. Both share what is packed of the site, and the
// values of its secrets.
func (h *Steered) Beside(name string, open func(Secrets) Host) *Steered {
	other := &Steered{packer: h.packer, Name: name, keys: h.keys}
	connect(other, open)
	return other
}

func connect(h *Steered, open func(Secrets) Host) {
	h.Host = open(secrets{h.keys, h})
	h.Releases = recorded{h.Releases, h}
}

// recorded releases make their host forget what Live has returned when another record is written.
type recorded struct {
	ReleaseHost
	of *Steered
}

func (r recorded) Write(ctx context.Context, releases observe.Releases) error {
	defer r.of.forgetLive()
	return r.ReleaseHost.Write(ctx, releases)
}

func (r recorded) Copy(ctx context.Context, releases observe.Releases) error {
	defer r.of.forgetLive()
	return r.ReleaseHost.Copy(ctx, releases)
}

// Site returns the site.
func (h *Steered) Site() *site.Site { return h.packer.Site() }

// Wanted returns what a node that is there shall be, and what its roles do on it, or nil if it is
// not declared any more.
func (h *Steered) Wanted(current *spec.Node) (*spec.Node, *spec.Duties, error) {
	return h.packer.Wanted(current)
}

// DutiesOf returns what the roles of a declared node do on it.
func (h *Steered) DutiesOf(n *site.Node) (*spec.Duties, error) { return h.packer.DutiesOf(n) }

// Pack returns a step with all that doing it takes, see pack.Packer.
func (h *Steered) Pack(s *plan.Step, live func() (*site.Site, error)) (*plan.Step, error) {
	return h.packer.Pack(s, live)
}

// Observe looks at what is there of the site, and at what the engines of its nodes can do.
func (h *Steered) Observe(ctx context.Context) (observe.Host, error) {
	return h.State.Observe(ctx, h.engines())
}

// engines returns those of all nodes of the site, and of its releases.
func (h *Steered) engines() []string {
	engines := map[string]bool{}
	for _, s := range append(slices.Collect(maps.Values(h.packer.Releases())), h.Site()) {
		for i := range s.Nodes {
			engines[s.Nodes[i].Engine] = true
		}
	}
	return slices.Sorted(maps.Keys(engines))
}

// Do does one step.
func (h *Steered) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	if s.Kind == plan.FetchLayer && h.fleet != nil {
		return h.fetch(ctx, s, say)
	}
	whole, err := h.Pack(s, func() (*site.Site, error) { return h.Live(ctx) })
	if err != nil {
		return err
	}
	if s.Kind == plan.BuildLayer {
		return h.build(ctx, whole, say)
	}
	if s.Kind == plan.MoveLinks && h.meets != nil {
		at := *whole
		at.At = h.meets.moment().Add(h.ahead)
		whole = &at
	}
	err = h.Runs.Do(ctx, whole, say)
	if s.Kind == plan.CommitSwitch {
		h.forgetLive()
	}
	return err
}

// Live returns the site with every node as the release makes it that is live. It is made once, as
// each node is told of all others.
func (h *Steered) Live(ctx context.Context) (*site.Site, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.lives != nil {
		return h.lives, nil
	}
	r, err := h.Releases.Read(ctx)
	if err != nil {
		return nil, err
	}
	h.lives, err = h.packer.Live(r)
	return h.lives, err
}

func (h *Steered) forgetLive() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.lives = nil
}

// SiteOf returns the site as the release of a declared node makes it.
func (h *Steered) SiteOf(n *site.Node) *site.Site { return h.packer.SiteOf(n.Release) }

// Probe looks into the live nodes that run (of these names; nil: all), and notes with each what has
// drifted since its roles were applied. What has not been applied yet is no drift: that is for the
// plan.
func (h *Steered) Probe(ctx context.Context, nodes []observe.Node, names map[string]bool) error {
	packer := h.packer.Afresh()
	wants := make([]Want, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if n.State != observe.Running || n.Staged || names != nil && !names[n.Name] {
			continue
		}
		var err error
		if wants[i].Node, wants[i].Duties, err = packer.Wanted(&n.Node); err != nil { // none, if it is on its way out
			return err
		}
	}
	return h.Nodes.DetectDrift(ctx, nodes, wants)
}

// AskKey asks a host for its public key, if the site encrypts networks.
func (h *Steered) AskKey(ctx context.Context, seen *observe.Host) (err error) {
	sites := slices.Collect(maps.Values(h.packer.Releases()))
	for _, s := range append(sites, h.Site()) {
		if slices.ContainsFunc(s.Networks, func(n site.Network) bool { return n.Encrypt }) {
			seen.Key, err = h.State.PublicKey(ctx)
			return err
		}
	}
	return nil
}
