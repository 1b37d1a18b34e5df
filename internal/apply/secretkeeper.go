package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"orrery/internal/observe"
	"orrery/internal/plan/rotation"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/text/humanize"
)

// A secretKeeper keeps the generated secrets of a site on the hosts of a fleet.
type secretKeeper struct{ *Fleet }

// SecretKeeper returns the keeper of the site's generated secrets.
func (f *Fleet) SecretKeeper() secretKeeper { return secretKeeper{f} }

// UseHosts declares that the fleet has all hosts of the site. From then on, the values of generated secrets
// come from the hosts.
func (k secretKeeper) UseHosts() {
	if len(k.All) > 0 {
		k.All[0].keys.Find = k.Generated // all hosts share this keyring
	}
}

// Generated returns a generated secret of a node, or of all nodes if node is "", from the hosts whose nodes
// need it or may need it. If no host has it and all were asked, Generated makes a new value.
//
// A host that had a node until now, or on which the node may be placed, decides the value of the node only if
// the host that will have the node has none.
func (k secretKeeper) Generated(ctx context.Context, s *site.Secret, node string) (none secret.Stored, err error) {
	name := secretspec.Name(s, node)
	var may, former, others []*HostClient
	for _, h := range k.All {
		switch {
		case h.MayNeedSecret(name):
			may = append(may, h)
		case node != "" && mayHaveHad(h, node):
			former = append(former, h)
		default:
			others = append(others, h)
		}
	}
	stored, who, err := agreed(ctx, name, may)
	if err == nil && who == nil {
		stored, who, err = agreed(ctx, name, former)
	}
	if err != nil || who != nil {
		return stored, err
	}
	if _, who, err := agreed(ctx, name, others); err != nil {
		return none, err
	} else if who != nil { // it must not decide the value for nodes of other hosts
		return none, problem.New(problem.Surprise,
			"generated secret %s is kept on host %s, where no node needs it, and on none where one does", name, who.Name).
			Try("if it is right, copy sites/%s/secrets/%s from the state directory of %s to that of the host whose nodes need it; else remove it there",
				k.Site().Key(), name, who.Name)
	}
	if len(k.Unknown) > 0 {
		return none, problem.New(problem.Unable, "generated secret %s is kept on no host that answers, and may be kept on %s",
			name, humanize.List(k.Unknown, 12)).
			Try("bring %s back; no second value is made without it", strings.Join(k.Unknown, ", "))
	}
	if s.Format == secretspec.X509 {
		if err := k.checkAuthority(ctx); err != nil {
			return none, err
		}
	}
	value, err := k.All[0].keys.Generate(s, node)
	return secret.Stored{Value: value, Generation: 1}, err
}

// checkAuthority returns a problem if this machine lacks the certificate authority of the site, but nodes have
// certificates. A second authority would be made, and nodes with certificates of one would not trust the other.
func (k secretKeeper) checkAuthority(ctx context.Context) error {
	if _, err := k.All[0].keys.Authority(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := range k.Site().Secrets {
		x := &k.Site().Secrets[i]
		if x.Format != secretspec.X509 {
			continue
		}
		for _, stored := range secretspec.Names(k.Site(), x) {
			_, who, err := agreed(ctx, stored, k.All)
			if err != nil {
				return err
			}
			if who != nil {
				return problem.New(problem.Unable, "the certificate authority of site %s is not on this machine, and %s on host %s is of it",
					k.Site().Key(), stored, who.Name).
					Try("copy sites/%s/keys/%s from the state directory of the machine that made it; orrery secret rotate %s makes another one and replaces all certificates",
						k.Site().Key(), secret.AuthorityFile, x.Name)
			}
		}
	}
	return nil
}

// Due returns which stored secrets need a new value, and why, by the name under which hosts store them: they
// are in another format than declared, or certificates that must be renewed. If this machine lacks the site's
// authority, it cannot renew certificates, and Due warns of them instead.
func (k secretKeeper) Due(ctx context.Context, s *site.Site, seen []observe.Host) (map[string]string, error) {
	if !slices.ContainsFunc(s.Secrets, func(x site.Secret) bool { return x.Format != "" }) || len(k.All) == 0 {
		return nil, nil
	}
	authority, err := k.All[0].keys.Authority()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	due := map[string]string{}
	var mu sync.Mutex
	return due, k.ForEach(func(_ int, h *HostClient) error {
		for stored := range storedOn(seen, h.Name) {
			name, node := secretspec.Split(stored)
			x, ok := s.Secret(name)
			if !ok || x.Format == "" || secretspec.Name(x, node) != stored {
				continue
			}
			kept, err := h.Secrets.Read(ctx, stored)
			if err != nil {
				return err
			}
			why := ""
			if n, ok := s.Node(node); secret.HasFormat(x, kept.Value) != nil {
				why = fmt.Sprintf("it is not in the format %q", x.Format)
			} else if ok && x.Format == secretspec.X509 && authority != nil {
				why = authority.RenewalReason(kept.Value, n, s.Name, h.keys.Time())
			} else if kept.IsDue(h.keys.Time()) {
				k.warn("secret %s of node %s: the certificate must be renewed, but the certificate authority is not on this machine: copy sites/%s/keys/%s from the machine that made it",
					name, node, s.Key(), secret.AuthorityFile)
			}
			if why != "" {
				mu.Lock()
				due[stored] = why
				mu.Unlock()
			}
		}
		return nil
	})
}

// storedOn returns the generations of the secrets that a host stores.
func storedOn(seen []observe.Host, host string) map[string]int {
	for i := range seen {
		if seen[i].Name == host {
			return seen[i].Secrets
		}
	}
	return nil
}

// agreed returns the secret that all hosts with a copy agree on, and one of these hosts, or nil if
// none has a copy.
func agreed(ctx context.Context, name string, hosts []*HostClient) (s secret.Stored, who *HostClient, err error) {
	copies := make([]secret.Stored, len(hosts))
	err = (&Fleet{All: hosts}).ForEach(func(i int, h *HostClient) (err error) {
		if copies[i], err = h.Secrets.Read(ctx, name); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return s, nil, err
	}
	for i, one := range copies {
		switch {
		case one.Value == "":
		case who == nil:
			s, who = one, hosts[i]
		case one.Generation != s.Generation:
			return secret.Stored{}, nil, rotation.Unfinished(name, who.Name, s.Generation, hosts[i].Name, one.Generation)
		case one != s:
			return secret.Stored{}, nil, problem.New(problem.Surprise,
				"hosts %s and %s keep different values of the generated secret %s", who.Name, hosts[i].Name, name).
				Try("decide which is right, and remove sites/%s/secrets/%s from the state directory of the other; --without leaves one out until then",
					who.Site().Key(), name)
		}
	}
	return s, who, nil
}

// MayNeedSecret reports whether a node that needs a secret is on the host or may be placed there. If a node
// has a value of its own, only the host that has or will have the node needs it.
func (h *HostClient) MayNeedSecret(stored string) bool {
	name, node := secretspec.Split(stored)
	if node != "" {
		return slices.ContainsFunc(viewsOf(h), func(s *site.Site) bool {
			n, ok := s.Node(node)
			return ok && secretspec.Reads(s, node, name) && isHome(h, s, n)
		})
	}
	if len(h.Site().Hosts) < 2 {
		return true
	}
	return slices.ContainsFunc(viewsOf(h), func(s *site.Site) bool {
		return slices.ContainsFunc(secretspec.Readers(s, name), func(n *site.Node) bool {
			return n.Host == "" || n.Host == h.Name
		})
	})
}

// viewsOf returns the site, also as each release makes it that is or may become live.
func viewsOf(h *HostClient) []*site.Site {
	all := []*site.Site{h.Site()}
	for _, s := range h.packer.Releases() {
		all = append(all, s)
	}
	return all
}

// isHome reports whether a node of a view is on the host or will be, or may be if that is unknown.
func isHome(h *HostClient, s *site.Site, n *site.Node) bool {
	if len(s.Hosts) < 2 {
		return true
	}
	home := cmp.Or(n.Host, h.packer.HomeOf(n.Name))
	return home == "" || home == h.Name
}

// mayHaveHad reports whether a node was seen on the host, or may have been placed there.
func mayHaveHad(h *HostClient, node string) bool {
	return h.packer.SourceOf(node) == h.Name || slices.ContainsFunc(viewsOf(h), func(s *site.Site) bool {
		n, ok := s.Node(node)
		return ok && n.Host == ""
	})
}

// Rotate stores a new generation of a secret of a node, or of all nodes if node is "", on all hosts that have
// nodes that need it or may need it. A generated secret gets a new value. No node is changed.
//
// If Rotate is interrupted, hosts have different generations. Then no plan is made until Rotate has
// stored one more generation everywhere. So no host decides on its own which value others use.
func (k secretKeeper) Rotate(ctx context.Context, s *site.Secret, node string, generation int) error {
	name, fresh := secretspec.Name(s, node), secret.Stored{Generation: generation}
	if s.Generate > 0 {
		var err error
		if fresh.Value, err = k.All[0].keys.Generate(s, node); err != nil {
			return err
		}
		if err := k.All[0].keys.Set(name, fresh); err != nil { // all hosts share this keyring
			return err
		}
	}
	return k.ForEach(func(_ int, h *HostClient) error {
		if !h.MayNeedSecret(name) {
			return nil
		}
		return h.Secrets.Replace(ctx, name, fresh)
	})
}

// maxSurplus is the maximum number of values of nodes that a host forgets at once.
const maxSurplus = 4096

// checkGenerations removes from what a host reports the secrets that none of its nodes needs, since the
// host has no say in these. It returns a problem if a number is no generation.
func checkGenerations(h *HostClient, seen *observe.Host) error {
	h.ownSecrets, h.surplus = false, nil
	var own map[string]bool
	for _, stored := range slices.Sorted(maps.Keys(seen.Secrets)) {
		_, node := secretspec.Split(stored)
		if node != "" && own == nil {
			h.ownSecrets, own = true, ownSecrets(h)
		}
		switch {
		case node != "" && !own[stored]:
			delete(seen.Secrets, stored)
			if len(h.surplus) < maxSurplus {
				h.surplus = append(h.surplus, stored)
			}
		case node == "" && (!declares(h, stored) || !h.MayNeedSecret(stored)):
			delete(seen.Secrets, stored)
		case !secret.ValidGeneration(seen.Secrets[stored]):
			return problem.New(problem.Surprise, "host %s: %d is not a generation of secret %s", h.Name, seen.Secrets[stored],
				stored).Try("--without %s leaves the host out", h.Name)
		}
	}
	return nil
}

// ownSecrets returns the stored names of the values of single nodes that a host needs. It looks at each node once,
// because a host may report any number of names.
func ownSecrets(h *HostClient) map[string]bool {
	all := map[string]bool{}
	for _, s := range viewsOf(h) {
		for i := range s.Secrets {
			x := &s.Secrets[i]
			if x.Per != secretspec.PerNode {
				continue
			}
			for _, n := range secretspec.Readers(s, x.Name) {
				if isHome(h, s, n) {
					all[secretspec.Name(x, n.Name)] = true
				}
			}
		}
	}
	return all
}

// isRead reports whether a node reads a secret in some view of the site.
func isRead(h *HostClient, node, secret string) bool {
	return slices.ContainsFunc(viewsOf(h), func(s *site.Site) bool { return secretspec.Reads(s, node, secret) })
}

// declares reports whether some view of the site declares a secret that is stored under this name.
func declares(h *HostClient, stored string) bool {
	name, node := secretspec.Split(stored)
	return slices.ContainsFunc(viewsOf(h), func(s *site.Site) bool {
		x, ok := s.Secret(name)
		return ok && secretspec.Name(x, node) == stored
	})
}

// HasOwn reports whether some host stores the value of a single node, according to the last observation.
func (k secretKeeper) HasOwn() bool {
	return slices.ContainsFunc(k.All, func(h *HostClient) bool { return h.ownSecrets })
}

// Undeclared returns the stored values of nodes that no view of the site declares with this secret,
// according to the last observation, in the order of their names.
func (k secretKeeper) Undeclared() []string {
	all := map[string]bool{}
	for _, h := range k.All {
		for _, stored := range h.surplus {
			name, node := secretspec.Split(stored)
			if !isRead(h, node, name) {
				all[stored] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Forget removes from each host the values of nodes that have been removed or have moved to another
// host, according to the last observation. The value of a declared node is removed only where another copy
// exists, because it may be needed again.
func (k secretKeeper) Forget(ctx context.Context, hosts []observe.Host) error {
	if len(k.Unknown) > 0 {
		return nil
	}
	existing := map[string]bool{}
	for i := range hosts {
		for k := range hosts[i].Nodes {
			existing[hosts[i].Nodes[k].Name] = true
		}
		for k := range hosts[i].OutgoingMoves {
			existing[hosts[i].OutgoingMoves[k].Name] = true
		}
	}
	return k.ForEach(func(_ int, h *HostClient) error {
		for _, stored := range h.surplus {
			name, node := secretspec.Split(stored)
			copied := slices.ContainsFunc(hosts, func(o observe.Host) bool { return o.Secrets[stored] > 0 })
			if !copied && (existing[node] || isRead(h, node, name)) {
				continue
			}
			if err := h.Secrets.Remove(ctx, stored); err != nil {
				return err
			}
			h.keeping.Lock()
			delete(h.told, stored)
			h.keeping.Unlock()
		}
		h.surplus = nil
		return nil
	})
}
