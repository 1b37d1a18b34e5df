package spec

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/render"
)

// Duties are what the roles of a node do on it, with all that doing it takes: rendered files,
// scripts, the environment, health checks. Who has them need know nothing else of the site. No
// value of a secret is in them, but where one belongs.
type Duties struct {
	Site         string       `json:"site"` // its name
	Node         string       `json:"node"`
	Release      int          `json:"release,omitempty"`
	Distribution string       `json:"distribution,omitempty"`
	Addresses    []netip.Addr `json:"addresses"` // the primary one first
	Env          []byte       `json:"env"`       // of all roles, as an environment file
	Roles        []Duty       `json:"roles"`     // those that others need come first

	// the node has no layers of roles: what those would have is put on it as it runs
	Unlayered bool   `json:"unlayered,omitempty"`
	Pins      string `json:"pins,omitempty"` // requirements of such a node
}

// A Duty is what one role does on a node.
type Duty struct {
	*site.Role `json:"role"` // less what is in layers only, and the contents of its files, if the node has layers
	Rendered   []Rendered    `json:"rendered"`
	Surround   []string      `json:"surround"` // KEY=value, which its steps and health commands see besides its own [env]
}

// A Rendered file is one that a role puts on the node and that no layer has.
type Rendered struct {
	Path    string `json:"path"`
	Owner   string `json:"owner"`
	Mode    uint32 `json:"mode"`
	Content []byte `json:"content"`          // unless it is secret
	Secret  bool   `json:"secret,omitempty"` // it has the value of a secret in it, so it must reach no disk
}

// Duties returns what the roles of a node do on it.
func (m *Maker) Duties(n *site.Node) (*Duties, error) {
	roles := m.Site.RolesOf(n)
	d := &Duties{Site: m.Site.Name, Node: n.Name, Release: n.Release, Distribution: distro.Of(m.Base(n).Image).Name,
		Env: Env(roles)}
	for _, nic := range n.NICs {
		d.Addresses = append(d.Addresses, nic.Address)
	}
	if m.Base(n).IsDisk() {
		d.Unlayered, d.Pins = true, n.Requirements.Text
	}
	surround := m.surround(n)
	for _, r := range roles {
		duty := Duty{Role: r, Surround: surround}
		if !d.Unlayered {
			duty.Role = m.onNodes(r)
		}
		for i := range r.Files {
			f := &r.Files[i]
			if !f.Rendered() {
				continue
			}
			text, err := m.View.File(r, f, n.Name, render.Named)
			if err != nil {
				return nil, err
			}
			made := Rendered{Path: f.Path, Owner: f.Owner, Mode: f.ModeFor(text.Secret), Secret: text.Secret}
			if !text.Secret {
				made.Content = text.Content
			}
			duty.Rendered = append(duty.Rendered, made)
		}
		d.Roles = append(d.Roles, duty)
	}
	return d, nil
}

// SecretText renders a file of a role that has values of secrets in it.
func (m *Maker) SecretText(n *site.Node, role, path string, secrets render.Secrets) ([]byte, error) {
	for _, r := range m.Site.RolesOf(n) {
		for i := range r.Files {
			if f := &r.Files[i]; r.Name == role && f.Path == path {
				text, err := m.View.File(r, f, n.Name, secrets)
				return text.Content, err
			}
		}
	}
	return nil, fmt.Errorf("role %s of node %s has no file %s", role, n.Name, path)
}

// onNodes returns a role without what is done of it in layers only. Its files there have names and no content.
func (m *Maker) onNodes(r *site.Role) *site.Role {
	if less, ok := m.lesser[r.Name]; ok {
		return less
	}
	less := *r
	less.Apt, less.Pip, less.Files = nil, nil, slices.Clone(r.Files)
	for i := range less.Files {
		less.Files[i].Content = nil
	}
	less.Steps = slices.DeleteFunc(slices.Clone(r.Steps), func(s site.Step) bool { return s.When == site.Build })
	if len(less.Steps) == 0 {
		less.Beside = nil
	}
	m.lesser[r.Name] = &less
	return &less
}

// surround returns what a step or health command sees of the site and its node.
func (m *Maker) surround(n *site.Node) []string {
	view := m.View.Node(n.Name)
	env := []string{
		"ORRERY_SITE=" + m.Site.Name, "ORRERY_NODE=" + view.Name, fmt.Sprintf("ORRERY_ID=%d", view.ID),
		"ORRERY_INVENTORY=/etc/orrery/inventory.json", "ORRERY_SECRETS=/etc/orrery/secrets",
	}
	if m.Site.Twin != "" {
		env = append(env, "ORRERY_TWIN="+m.Site.Twin)
	}
	if view.Release != 0 {
		env = append(env, fmt.Sprintf("ORRERY_RELEASE=%d", view.Release))
	}
	if view.Address.IsValid() {
		env = append(env, "ORRERY_ADDRESS="+view.Address.String())
	}
	for _, network := range slices.Sorted(maps.Keys(view.Addresses)) {
		env = append(env, "ORRERY_ADDRESS_"+variable(network)+"="+view.Addresses[network].String())
	}
	return append(env, m.peers()...)
}

// peers returns the names of all nodes by role. They are alike for all nodes, and many.
func (m *Maker) peers() []string {
	if m.named == nil {
		m.named = []string{}
		for _, r := range m.Site.Roles {
			var names []string
			for _, p := range m.View.Peers(r.Name) {
				names = append(names, p.Name)
			}
			if len(names) > 0 {
				m.named = append(m.named, "ORRERY_PEERS_"+variable(r.Name)+"="+strings.Join(names, " "))
			}
		}
	}
	return m.named
}

// variable makes a name fit for a variable: upper case, "_" for all that is neither letter nor digit.
func variable(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, name)
}

// A SecretText is a rendered file with values of secrets in it, as a step refers to it: whoever has
// the site and the values can tell what it says.
type SecretText struct {
	Node    string `json:"node"`
	Release int    `json:"release,omitempty"`
	Role    string `json:"role"`
	Path    string `json:"path"`
}
