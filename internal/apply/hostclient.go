package apply

import (
	"context"
	"fmt"
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
	"orrery/internal/site/feature"
	"orrery/internal/site/spec"
)

// HostClient is a host of a site, together with the site. The Host itself knows only the site's key.
// HostClient adds everything to a step before the host gets it, and resolves the secrets that steps
// refer to.
type HostClient struct {
	Host
	packer *pack.Packer // shared by all hosts of the fleet, and changed only by the fleet
	Name   string       // the name of the host in the site
	// the name in backups and lists, or "" for the only host of the site, which needs none
	Label string
	Files map[string]string // files on this machine from which the site's images are made, by digest
	keys  *secret.Keyring
	// generated secrets of which the host has a copy; Steered.keeping is held while one is stored
	told    map[string]bool
	keeping sync.Mutex
	// whether the host stores values of single nodes, and those that it does not need, according to the last
	// observation
	ownSecrets bool
	surplus    []string

	marking sync.Mutex
	marked  string // the recorded owner of the host's nodes, or "" if unknown

	fleet *Fleet       // the fleet whose plan is carried out, or nil
	meets *sharedStart // shared with the other hosts, or nil if there are none
	ahead time.Duration

	lock  sync.Mutex
	lives *site.Site // the result of Live, or nil if it must be computed again
}

// NewHostClient combines a site with the host that it calls name. Open returns the host, which gets the
// values of secrets through its argument.
func NewHostClient(name string, s *site.Site, dirs host.Dirs, open func(Secrets) Host) *HostClient {
	h := &HostClient{packer: pack.New(s, nil), Name: name, keys: secret.NewKeyring(s, dirs)}
	attach(h, open)
	SingleHost(h).SecretKeeper().UseHosts()
	return h
}

// ForHost returns another host of the same site. Both share the packer and the values of the site's
// secrets.
func (h *HostClient) ForHost(name string, open func(Secrets) Host) *HostClient {
	other := &HostClient{packer: h.packer, Name: name, keys: h.keys}
	attach(other, open)
	return other
}

func attach(h *HostClient, open func(Secrets) Host) {
	h.Host = open(secrets{h.keys, h})
	h.Releases = invalidatingReleases{h.Releases, h}
}

// invalidatingReleases makes its host forget the result of Live when another record is written.
type invalidatingReleases struct {
	ReleaseHost
	of *HostClient
}

func (r invalidatingReleases) Write(ctx context.Context, releases observe.Releases) error {
	defer r.of.invalidateLive()
	return r.ReleaseHost.Write(ctx, releases)
}

func (r invalidatingReleases) Copy(ctx context.Context, releases observe.Releases) error {
	defer r.of.invalidateLive()
	return r.ReleaseHost.Copy(ctx, releases)
}

// Site returns the site.
func (h *HostClient) Site() *site.Site { return h.packer.Site() }

// Wanted returns the desired state of an existing node and what its roles do on it, or nil if it is
// no longer declared.
func (h *HostClient) Wanted(current *spec.Node) (*spec.Node, *spec.RoleActions, error) {
	return h.packer.Desired(current)
}

// DutiesOf returns what the roles of a declared node do on it.
func (h *HostClient) DutiesOf(n *site.Node) (*spec.RoleActions, error) { return h.packer.DutiesOf(n) }

// Pack returns a step with everything needed to do it (see pack.Packer).
func (h *HostClient) Pack(s *plan.Step, live func() (*site.Site, error)) (*plan.Step, error) {
	return h.packer.Pack(s, live)
}

// Observe returns what exists of the site on the host, and what the engines of its nodes can do.
func (h *HostClient) Observe(ctx context.Context) (observe.Host, error) {
	return h.State.Observe(ctx, h.needs())
}

// needs returns the engines of all nodes of the site and of its releases, and the features that they
// need of the kernel.
func (h *HostClient) needs() []string {
	needs := map[string]bool{}
	for _, s := range append(slices.Collect(maps.Values(h.packer.Releases())), h.Site()) {
		for i := range s.Nodes {
			needs[s.Nodes[i].Engine] = true
			for _, name := range feature.Of(&s.Nodes[i]) {
				needs[name] = true
			}
			for _, d := range s.Nodes[i].Devices {
				needs[feature.Device(fmt.Sprintf("%s/%d", s.Key(), s.Nodes[i].FullID()), d)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(needs))
}

// Do does one step.
func (h *HostClient) Do(ctx context.Context, s *plan.Step, say func(string)) error {
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
		at.At = h.meets.next().Add(h.ahead)
		whole = &at
	}
	err = h.Runs.Do(ctx, whole, say)
	if s.Kind == plan.CommitSwitch {
		h.invalidateLive()
	}
	return err
}

// Live returns the site with every node as its live release declares it. The result is cached, because
// the names of all nodes are written to each node.
func (h *HostClient) Live(ctx context.Context) (*site.Site, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.lives != nil {
		return h.lives, nil
	}
	r, err := h.Releases.Read(ctx)
	if err != nil {
		return nil, err
	}
	h.lives, err = h.packer.LiveSite(r)
	return h.lives, err
}

func (h *HostClient) invalidateLive() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.lives = nil
}

// SiteOf returns the site as the release of a declared node makes it.
func (h *HostClient) SiteOf(n *site.Node) *site.Site { return h.packer.SiteOf(n.Release) }

// DetectDrift looks into the running live nodes called names, or all of them if names is nil. It stores
// in each node what has drifted since its roles were applied. Changes that have not been applied
// yet are not drift, but left to the plan.
func (h *HostClient) DetectDrift(ctx context.Context, nodes []observe.Node, names map[string]bool) error {
	packer := h.packer.WithoutCaches()
	wants := make([]DesiredNode, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if n.State != observe.Running || n.Staged || names != nil && !names[n.Name] {
			continue
		}
		var err error
		if wants[i].Node, wants[i].Duties, err = packer.Desired(&n.Node); err != nil { // nil if the node will be removed
			return err
		}
	}
	return h.Nodes.DetectDrift(ctx, nodes, wants)
}

// FetchPublicKey stores the host's public key in seen if the site encrypts networks.
func (h *HostClient) FetchPublicKey(ctx context.Context, seen *observe.Host) (err error) {
	sites := slices.Collect(maps.Values(h.packer.Releases()))
	for _, s := range append(sites, h.Site()) {
		if slices.ContainsFunc(s.Networks, func(n site.Network) bool { return n.Encrypt }) {
			seen.Key, err = h.State.PublicKey(ctx)
			return err
		}
	}
	return nil
}
