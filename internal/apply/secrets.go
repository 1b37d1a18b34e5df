package apply

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan/rotation"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
)

// A SecretHost keeps copies of the generated secrets that its nodes need.
type SecretHost interface {
	// Read returns the host's copy of a generated secret, or fs.ErrNotExist.
	Read(ctx context.Context, name string) (secret.Stored, error)
	// Store stores such a copy. It does not replace an existing one.
	Store(ctx context.Context, name string, s secret.Stored) error
	// Replace stores a new generation of a secret. The value is empty unless the secret is generated.
	Replace(ctx context.Context, name string, s secret.Stored) error
	// Redact hides the values of secrets in the output of a command on the host.
	Redact(text string) string
}

// secrets provides a host with the values of a site's secrets, and with the files that contain
// some.
type secrets struct {
	*secret.Keyring
	host *HostClient
}

// Value returns the value of a secret. A generated secret is first stored on the host, so that the
// host that uses it has a copy even if others are lost.
func (s secrets) Value(ctx context.Context, name string) (string, error) {
	if !s.host.MayNeedSecret(name) { // whatever nodes the host claims to have
		return "", problem.New(problem.Unable, "no node on host %s needs secret %s", s.host.Name, name)
	}
	v, err := s.Keyring.Value(ctx, name)
	if err == nil && s.Generated(name) {
		err = s.host.storeSecret(ctx, name, s.Stored(name))
	}
	return v, err
}

// Text renders a file.
func (s secrets) Text(ctx context.Context, t spec.SecretText) ([]byte, error) {
	return s.host.packer.SecretText(ctx, t, s.Value)
}

// storeSecret stores a copy of a generated secret on the host.
func (h *HostClient) storeSecret(ctx context.Context, name string, s secret.Stored) error {
	h.keeping.Lock()
	defer h.keeping.Unlock()
	if h.told[name] {
		return nil
	}
	err := h.Secrets.Store(ctx, name, s)
	if err == nil {
		if h.told == nil {
			h.told = map[string]bool{}
		}
		h.told[name] = true
	}
	return err
}

// UseHostSecrets declares that the fleet has all hosts of the site. From then on, the values of
// generated secrets come from the hosts.
func (f *Fleet) UseHostSecrets() {
	if len(f.All) > 0 {
		f.All[0].keys.Find = f.Generated // all hosts share this keyring
	}
}

// Generated returns a generated secret from the hosts whose nodes need it or may need it. If no host
// has it and all were asked, Generated makes a new value.
func (f *Fleet) Generated(ctx context.Context, s *site.Secret) (none secret.Stored, err error) {
	var may, others []*HostClient
	for _, h := range f.All {
		if h.MayNeedSecret(s.Name) {
			may = append(may, h)
		} else {
			others = append(others, h)
		}
	}
	stored, who, err := agreed(ctx, s.Name, may)
	if err != nil || who != nil {
		return stored, err
	}
	if _, who, err := agreed(ctx, s.Name, others); err != nil {
		return none, err
	} else if who != nil { // it must not decide the value for nodes of other hosts
		return none, problem.New(problem.Surprise,
			"generated secret %s is kept on host %s, where no node needs it, and on none where one does", s.Name, who.Name).
			Try("if it is right, copy sites/%s/secrets/%s from the state directory of %s to that of the host whose nodes need it; else remove it there",
				f.Site().Key(), s.Name, who.Name)
	}
	if len(f.Unknown) > 0 {
		return none, problem.New(problem.Unable, "generated secret %s is kept on no host that answers, and may be kept on %s",
			s.Name, humanize.List(f.Unknown, 12)).
			Try("bring %s back; no second value is made without it", strings.Join(f.Unknown, ", "))
	}
	return secret.Stored{Value: secret.Random(s.Generate), Generation: 1}, nil
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

// MayNeedSecret reports whether a node that needs a secret is on the host or may be placed there.
func (h *HostClient) MayNeedSecret(name string) bool {
	if len(h.Site().Hosts) < 2 {
		return true
	}
	sites := []*site.Site{h.Site()}
	for _, s := range h.packer.Releases() {
		sites = append(sites, s)
	}
	for _, s := range sites {
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if n.Host != "" && n.Host != h.Name {
				continue
			}
			for _, r := range s.RolesOf(n) {
				if slices.ContainsFunc(r.Secrets, func(use site.SecretUse) bool { return use.Name == name }) {
					return true
				}
			}
		}
	}
	return false
}

// Rotate stores a new generation of a secret on all hosts that have nodes that need it or may need it. A
// generated secret gets a new value. No node is changed.
//
// If Rotate is interrupted, hosts have different generations. Then no plan is made until Rotate has
// stored one more generation everywhere. So no host decides on its own which value others use.
func (f *Fleet) Rotate(ctx context.Context, s *site.Secret, generation int) error {
	fresh := secret.Stored{Generation: generation}
	if s.Generate > 0 {
		fresh.Value = secret.Random(s.Generate)
		f.All[0].keys.Set(s.Name, fresh) // all hosts share this keyring
	}
	return f.ForEach(func(_ int, h *HostClient) error {
		if !h.MayNeedSecret(s.Name) {
			return nil
		}
		return h.Secrets.Replace(ctx, s.Name, fresh)
	})
}

// checkGenerations removes from what a host reports the secrets that none of its nodes needs, since the
// host has no say in these. It returns a problem if a number is no generation.
func checkGenerations(h *HostClient, seen *observe.Host) error {
	for name, n := range seen.Secrets {
		if _, declared := h.Site().Secret(name); !declared || !h.MayNeedSecret(name) {
			delete(seen.Secrets, name)
		} else if !secret.ValidGeneration(n) {
			return problem.New(problem.Surprise, "host %s: %d is not a generation of secret %s", h.Name, n, name).
				Try("--without %s leaves the host out", h.Name)
		}
	}
	return nil
}
