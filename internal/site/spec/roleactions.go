package spec

import (
	"fmt"
	"net/netip"
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/params"
	"orrery/internal/site/render"
	"orrery/internal/site/secretspec"
)

// RoleActions are everything that the roles of a node do on it: rendered files, scripts, the environment
// and health checks. They are complete, so the host that carries them out needs no other part of the
// site. They contain placeholders instead of the values of secrets.
type RoleActions struct {
	Site         string       `json:"site"` // its name
	Node         string       `json:"node"`
	Release      int          `json:"release,omitempty"`
	Distribution string       `json:"distribution,omitempty"`
	Addresses    []netip.Addr `json:"addresses"` // the primary address first
	Env          []byte       `json:"env"`       // of all roles, as an environment file
	Roles        []RoleAction `json:"roles"`     // a role comes after those that it needs
	// OwnSecrets are the secrets of the roles of which each node has a value of its own.
	OwnSecrets []string `json:"own_secrets,omitempty"`

	// Unlayered means that the node has no role layers. Their content is installed while the node
	// runs.
	Unlayered bool   `json:"unlayered,omitempty"`
	Pins      string `json:"pins,omitempty"` // Python requirements of an unlayered node
}

// StoredSecret returns the name under which hosts store a secret of the node.
func (d *RoleActions) StoredSecret(name string) string {
	x := site.Secret{Name: name}
	if slices.Contains(d.OwnSecrets, name) {
		x.Per = secretspec.PerNode
	}
	return secretspec.Name(&x, d.Node)
}

// A RoleAction is what one role does on a node.
type RoleAction struct {
	*site.Role `json:"role"`  // without the parts that only layers contain, if the node has layers
	Rendered   []RenderedFile `json:"rendered"`
	// KEY=value for its steps and health commands, in addition to its own [env]
	Surround []string `json:"surround"`
}

// A RenderedFile is a file of a role that differs between nodes and is in no layer.
type RenderedFile struct {
	Path    string `json:"path"`
	Owner   string `json:"owner"`
	Mode    uint32 `json:"mode"`
	Content []byte `json:"content"` // empty if Secret is set
	// Secret means that Content contains the value of a secret and must never be written to a disk.
	Secret bool `json:"secret,omitempty"`
}

// RoleActions returns the duties of a node.
func (m *Builder) RoleActions(n *site.Node) (*RoleActions, error) {
	roles := m.Site.RolesOf(n)
	d := &RoleActions{Site: m.Site.Name, Node: n.Name, Release: n.Release,
		Distribution: distro.ForImage(m.Base(n).Image).Name,
		Env:          EnvFile(roles)}
	for _, nic := range n.NICs {
		d.Addresses = append(d.Addresses, nic.Address)
	}
	if m.Base(n).IsDisk() {
		d.Unlayered, d.Pins = true, n.Requirements.Text
	}
	surround := m.View.Environment(n.Name)
	for _, r := range roles {
		duty := RoleAction{Role: r, Surround: surround}
		if variables := params.Env(m.Site, n, r); len(variables) > 0 {
			duty.Surround = slices.Concat(surround, variables)
		}
		if !d.Unlayered {
			duty.Role = m.runtimeRole(r)
		}
		if slices.ContainsFunc(r.Health, params.HasParams) {
			own := *duty.Role
			own.Health = params.Health(m.Site, n, r)
			duty.Role = &own
		}
		for i := range r.Files {
			f := &r.Files[i]
			if !f.Rendered() {
				continue
			}
			text, err := m.View.File(r, f, n.Name, render.Placeholder)
			if err != nil {
				return nil, err
			}
			made := RenderedFile{Path: f.Path, Owner: f.Owner, Mode: f.ModeFor(text.Secret), Secret: text.Secret}
			if !text.Secret {
				made.Content = text.Content
			}
			duty.Rendered = append(duty.Rendered, made)
		}
		d.Roles = append(d.Roles, duty)
		for _, use := range r.Secrets {
			if x, ok := m.Site.Secret(use.Name); ok && x.Per == secretspec.PerNode && !slices.Contains(d.OwnSecrets, use.Name) {
				d.OwnSecrets = append(d.OwnSecrets, use.Name)
			}
		}
	}
	if f, ok := m.accessFile(n); ok {
		d.Roles = append(d.Roles, RoleAction{Role: accessRole(f.Path), Rendered: []RenderedFile{f}})
	}
	return d, nil
}

// SecretText renders a file of a role that contains values of secrets.
func (m *Builder) SecretText(n *site.Node, role, path string, secrets render.Secrets) ([]byte, error) {
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

// runtimeRole returns a role without its build steps and packages, which are only in layers. Its files
// there have names but no content.
func (m *Builder) runtimeRole(r *site.Role) *site.Role {
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

// A SecretText refers to a rendered file that contains values of secrets. Maker.SecretText renders
// it from the site and the values.
type SecretText struct {
	Node    string `json:"node"`
	Release int    `json:"release,omitempty"`
	Role    string `json:"role"`
	Path    string `json:"path"`
}
