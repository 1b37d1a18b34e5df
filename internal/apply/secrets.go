package apply

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
)

// A SecretHost keeps copies of the generated secrets that its nodes need.
type SecretHost interface {
	// Read returns the host's copy of a generated secret, or fs.ErrNotExist.
	Read(ctx context.Context, name string) (string, error)
	// Store stores such a copy. It does not replace an existing one.
	Store(ctx context.Context, name, value string) error
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
		err = s.host.storeSecret(ctx, name, v)
	}
	return v, err
}

// Text renders a file.
func (s secrets) Text(ctx context.Context, t spec.SecretText) ([]byte, error) {
	return s.host.packer.SecretText(ctx, t, s.Value)
}

// storeSecret stores a copy of a generated secret on the host.
func (h *HostClient) storeSecret(ctx context.Context, name, value string) error {
	h.keeping.Lock()
	defer h.keeping.Unlock()
	if h.told[name] {
		return nil
	}
	err := h.Secrets.Store(ctx, name, value)
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

// Generated returns the value of a generated secret from the hosts whose nodes need it or may need
// it. If no host has it and all were asked, Generated makes a new value.
func (f *Fleet) Generated(ctx context.Context, s *site.Secret) (string, error) {
	var may, others []*HostClient
	for _, h := range f.All {
		if h.MayNeedSecret(s.Name) {
			may = append(may, h)
		} else {
			others = append(others, h)
		}
	}
	value, who, err := agreed(ctx, s.Name, may)
	if err != nil || who != nil {
		return value, err
	}
	if _, who, err := agreed(ctx, s.Name, others); err != nil {
		return "", err
	} else if who != nil { // it must not decide the value for nodes of other hosts
		return "", problem.New(problem.Surprise,
			"generated secret %s is kept on host %s, where no node needs it, and on none where one does", s.Name, who.Name).
			Try("if it is right, copy sites/%s/secrets/%s from the state directory of %s to that of the host whose nodes need it; else remove it there",
				f.Site().Key(), s.Name, who.Name)
	}
	if len(f.Unknown) > 0 {
		return "", problem.New(problem.Unable, "generated secret %s is kept on no host that answers, and may be kept on %s",
			s.Name, humanize.List(f.Unknown, 12)).
			Try("bring %s back; no second value is made without it", strings.Join(f.Unknown, ", "))
	}
	return secret.Random(s.Generate), nil
}

// agreed returns the value that all hosts with a copy agree on, and one of these hosts, or nil if
// none has a copy.
func agreed(ctx context.Context, name string, hosts []*HostClient) (value string, who *HostClient, err error) {
	values := make([]string, len(hosts))
	err = (&Fleet{All: hosts}).Each(func(i int, h *HostClient) (err error) {
		if values[i], err = h.Secrets.Read(ctx, name); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return "", nil, err
	}
	for i, v := range values {
		switch {
		case v == "":
		case who == nil:
			value, who = v, hosts[i]
		case v != value:
			return "", nil, problem.New(problem.Surprise, "hosts %s and %s keep different values of the generated secret %s",
				who.Name, hosts[i].Name, name).
				Try("decide which is right, and remove sites/%s/secrets/%s from the state directory of the other; --without leaves one out until then",
					who.Site().Key(), name)
		}
	}
	return value, who, nil
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
