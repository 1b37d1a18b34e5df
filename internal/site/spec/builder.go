package spec

import (
	"cmp"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/params"
	"orrery/internal/site/render"
)

// A Builder derives the specs of one site. It caches what many nodes share, so that the specs of ten
// thousand nodes take well under a second. It is not safe for concurrent use.
type Builder struct {
	Site   *site.Site
	View   *render.View
	MTUs   map[string]int // of networks without a declared MTU, if not DefaultMTU
	bases  map[string]*Layer
	layers map[recipe][]*Layer
	fixed  map[string]PartDigests // by role: its parts that are the same on every node
	lesser map[string]*site.Role
}

// A recipe has everything that determines the layers of a node. It is the key of a cache.
type recipe struct {
	image, roles, pins string
	kernel, hardware   bool
}

// NewBuilder returns the Builder of a site.
func NewBuilder(s *site.Site) *Builder {
	return &Builder{Site: s, View: render.New(s), bases: map[string]*Layer{}, layers: map[recipe][]*Layer{},
		fixed: map[string]PartDigests{}, lesser: map[string]*site.Role{}}
}

// DefaultMTU is the MTU of networks that declare none and for which Builder.MTUs has none.
const DefaultMTU = 1500

// Key returns the key under which hosts store the networks of the site.
func (m *Builder) Key() string {
	if m.Site.Stage != 0 {
		return site.Quarantine(m.Site.Key(), m.Site.Stage)
	}
	return m.Site.Key()
}

// Networks returns the specs of the site's networks.
func (m *Builder) Networks() []Network {
	var all []Network
	if m.Site.Stage == 0 { // a quarantine has only bridges
		for _, c := range m.Site.VethPairs {
			all = append(all, VethPairOf(m.Site.Key(), c))
		}
	}
	for _, n := range m.Site.Networks {
		all = append(all, m.network(n))
	}
	return all
}

// VethPairOf returns the spec of a veth pair of a site. It is a network with a name that no
// declared network can have. Its link carries only the mark.
func VethPairOf(key string, c site.VethPair) Network {
	name := VethPair + "." + c.Name
	return Network{Site: key, Name: name, Bridge: site.BridgeName(key, name), MTU: cmp.Or(c.MTU, DefaultMTU),
		Kind: VethPair, Ends: c.Ends}
}

func (m *Builder) network(n site.Network) Network {
	spelt := Network{
		Site: m.Site.Key(), Name: n.Name, Bridge: site.BridgeName(m.Site.Key(), n.Name),
		Subnet: n.Subnet.String(), MTU: cmp.Or(n.MTU, m.MTUs[n.Name], DefaultMTU), Kind: n.Kind, Parent: n.Interface,
		Spoof: n.Spoof,
	}
	if all, err := site.ParseProtocols(n.Protocols); err == nil { // else package check has reported it
		spelt.Protocols = site.FormatProtocols(all)
	}
	if n.HasUplink() {
		spelt.Parent, spelt.Uplink = "", Uplink{Interface: n.Interface, VLAN: n.VLAN, Bridge: n.Bridge}
	}
	if m.Site.Stage != 0 {
		return spelt.Quarantined(m.Site.Stage)
	}
	if n.Bridge != "" {
		spelt.Host = portRanges(n.Host) // at the host's addresses on its own bridge
	}
	if n.HasUplink() && !n.NAT {
		return spelt // the gateway, if there is one, is a router on the physical network
	}
	if !n.Gateway.IsValid() || n.Isolated && !n.NAT && !m.Site.IsServed(n.Name, "") || site.KindOf(n.Kind).WithoutHost {
		return spelt
	}
	spelt.NAT, spelt.Router, spelt.Metadata = n.NAT, n.Isolated, n.NAT && n.Metadata
	spelt.Gateway = netip.PrefixFrom(n.Gateway, n.Subnet.Bits()).String()
	if !n.Isolated { // else the host has no address on it
		spelt.Host = portRanges(n.Host)
	}
	return spelt
}

func portRanges(words []string) string {
	all, err := site.ParsePortRanges(words)
	if err != nil {
		return "" // package check has reported it
	}
	var texts []string
	for _, o := range all {
		texts = append(texts, o.String())
	}
	return strings.Join(texts, ",")
}

// Base returns the recipe of a node's base image.
func (m *Builder) Base(n *site.Node) *Layer {
	if l, ok := m.bases[n.Image]; ok {
		return l
	}
	img, ok := m.Site.Image(n.Image)
	if !ok {
		img = &site.Image{Name: n.Image}
	}
	l := Base(m.Site.Mirror, *img)
	m.bases[n.Image] = l
	return l
}

// Layers returns the recipes of a node's layers, the lowest first. They are the base, the kernel if
// the node boots one, and the layers of its roles.
func (m *Builder) Layers(n *site.Node) []*Layer {
	key := recipe{n.Image, strings.Join(n.Roles, " "), n.Requirements.Text, site.BootsKernel(n.Engine), hardware(n)}
	if chain, ok := m.layers[key]; ok {
		return chain
	}
	base := m.Base(n)
	chain := []*Layer{base}
	switch {
	case base.IsDisk(): // the node installs the content of its roles while it runs
		m.layers[key] = chain
		return chain
	case key.hardware:
		chain = append(chain, FullKernelLayer(m.Site.Mirror, base))
	case key.kernel:
		chain = append(chain, KernelLayer(m.Site.Mirror, base))
	}
	chain = append(chain, RoleLayers(m.Site.Mirror, base, m.Site.RolesOf(n), n.Requirements.Text)...)
	m.layers[key] = chain
	return chain
}

// hardware reports whether a node needs a kernel with more than the drivers for virtual machines.
// It needs one for devices that are real or emulated hardware, and on Xen for the root.
func hardware(n *site.Node) bool {
	return n.Engine == site.Xen || n.Virtual() && (n.VM.Model != "" && n.VM.Model != site.Virtio || len(n.VM.PCI) > 0)
}

// Node returns the spec of a node. It returns an error if a template cannot be rendered.
func (m *Builder) Node(n *site.Node) (*Node, error) {
	spelt := &Node{
		Site: m.Site.Key(), Name: n.Name, ID: n.FullID(), Release: n.Release, Staged: m.Site.Stage != 0, Engine: n.Engine,
		MachineID:    site.MachineID(m.Site.Name, n.Name),
		Distribution: distro.ForImage(m.Base(n).Image).Name, Base: m.Base(n).
				Digest, Privileged: n.Privileged, Syscalls: n.Syscalls, Devices: n.Devices,
		Autostart: n.Autostart, Limits: n.Limits,
		VM: n.VM, Xen: n.Xen, NICs: m.nics(n),
	}
	roles := m.Site.RolesOf(n)
	spelt.Disk = m.Base(n).Image.Disk()
	chain := m.Layers(n)[1:]
	if site.BootsKernel(n.Engine) && !spelt.Imported() {
		spelt.Kernel, chain = chain[0].Digest, chain[1:]
	}
	if len(chain) > 0 {
		top := chain[len(chain)-1]
		spelt.Layer, spelt.Below, spelt.Parts = top.Digest, top.Below, top.Parts
		if len(chain) > 1 {
			spelt.Parts = PartDigests{}
			for _, l := range chain {
				maps.Copy(spelt.Parts, l.Parts)
			}
		}
	}
	for _, r := range roles {
		for _, use := range r.Volumes {
			spelt.Mounts = append(spelt.Mounts, m.quarantineMount(m.mount(use), use))
		}
	}
	config, err := m.config(n, roles)
	if spelt.Imported() {
		addBuilt(config.Parts, m.Site.Mirror, roles, n.Requirements.Text)
	}
	spelt.Config = config
	return spelt, err
}

func (m *Builder) nics(n *site.Node) []NIC {
	var all []NIC
	routed := false
	for i, nic := range n.NICs {
		network, ok := m.Site.Network(nic.Network)
		if !ok {
			continue
		}
		on := m.network(*network)
		spelt := NIC{
			Name: "eth" + strconv.Itoa(i), Network: nic.Network, Bridge: on.Bridge,
			HostIfName: m.hostIfName(n, network),
			MAC:        site.MAC(m.Site.Name, n.Name, nic.Network),
			Address:    netip.PrefixFrom(nic.Address, network.Subnet.Bits()), MTU: on.MTU, IPv6: addresses(nic.IPv6),
			Moving: addresses(nic.Moving),
			Kind:   network.Kind, Traffic: nic.Traffic,
		}
		switch kind := site.KindOf(network.Kind); {
		case kind.OnInterface:
			spelt.Parent = network.Interface
		case kind.TakesInterfaces:
			spelt.Parent = nic.Interface
			if kind.VirtualFunctions {
				spelt.VLAN = network.VLAN
			}
		case kind.Routed:
			spelt.Via = network.Gateway.String()
		}
		if network.Gateway.IsValid() && !routed {
			spelt.Gateway, routed = network.Gateway.String(), true
		}
		all = append(all, spelt)
	}
	return all
}

func addresses(all []netip.Addr) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ",")
}

func (m *Builder) hostIfName(n *site.Node, on *site.Network) string {
	if !site.KindOf(on.Kind).Routed {
		return HostIfName(m.Site.Key(), n.Release, n.Name, on.Name)
	}
	release := m.Site.Key()
	if n.Release != 0 {
		release = site.Quarantine(release, n.Release)
	}
	return site.RoutedName(m.Site.Key(), release, n.Name, on.Name)
}

// HostIfName returns the name of the host's end of a link to a node. It depends on the release and not
// on whether the release is live, so it stays when the link moves to another bridge.
func HostIfName(key string, release int, node, network string) string {
	if release != 0 {
		key = site.Quarantine(key, release)
	}
	return site.VethName(key, node, network)
}

// quarantineMount replaces a volume that only live nodes may use by a copy, if the site is a quarantine.
func (m *Builder) quarantineMount(v Mount, use site.VolumeUse) Mount {
	if m.Site.Stage == 0 || !v.Exclusive {
		return v
	}
	v.Copy, v.Release = use.Quarantine, m.Site.Stage
	if !v.From().Copyable {
		v.Copy = site.CopyEmpty // a volume on a server can have any size
	}
	return v
}

func (m *Builder) mount(use site.VolumeUse) Mount {
	v := m.Site.Volume(use.Name)
	return Mount{
		Volume: v.Name, Path: use.Path, Source: v.Path, Remote: v.Remote, Shared: v.Shared,
		Owner: use.Owner, Mode: use.Mode, Exclusive: use.Exclusive, Layer: use.From == site.FromLayer,
	}
}

// paramParts returns the values of a role's parameters on a node, by the part that each of them is.
func (m *Builder) paramParts(n *site.Node, r *site.Role) map[string]string {
	values := map[string]string{}
	for _, variable := range params.Env(m.Site, n, r) {
		name, value, _ := strings.Cut(variable, "=")
		values[r.Name+": parameter "+strings.ToLower(strings.TrimPrefix(name, "ORRERY_PARAM_"))] = value
	}
	return values
}

func (m *Builder) config(n *site.Node, roles []*site.Role) (Config, error) {
	c := Config{Parts: PartDigests{}}
	var health []any
	for _, r := range roles {
		maps.Copy(c.Parts, m.fixedParts(r))
		for part, value := range m.paramParts(n, r) {
			c.Parts[part] = Digest(value)
		}
		for i := range r.Files {
			f := &r.Files[i]
			if !f.Rendered() {
				continue
			}
			text, err := m.View.File(r, f, n.Name, render.Placeholder)
			if err != nil {
				return c, err
			}
			c.Parts[r.Name+": file "+f.Path] = Digest([]any{f.Owner, f.ModeFor(text.Secret), text.Secret,
				DigestBytes(text.Content)})
		}
		c.Services = append(c.Services, r.Services...)
		if len(r.Health) > 0 {
			health = append(health, r.Name, checks(params.Health(m.Site, n, r)))
		}
	}
	if f, ok := m.accessFile(n); ok {
		c.Parts[AccessPart(f.Path)] = Digest([]any{f.Owner, f.Mode, DigestBytes(f.Content)})
	}
	if len(health) > 0 {
		c.Health = Digest(health)
	}
	if m.Site.Stage == 0 {
		c.Active = ActiveParts(roles)
	}
	return c, nil
}

// fixedParts returns the parts of a role that are the same on all its nodes, which excludes rendered
// files. They include the volumes. The engine mounts those, but boot steps prepare their content.
func (m *Builder) fixedParts(r *site.Role) PartDigests {
	if p, ok := m.fixed[r.Name]; ok {
		return p
	}
	p := PartDigests{}
	for _, s := range r.Steps {
		if s.When == site.Boot || s.When == site.Started {
			p[r.Name+": step "+s.Name] = Digest([]any{s.Script, s.Interpreter, s.User})
		}
	}
	for _, name := range BootFiles(r) {
		p[r.Name+": "+name] = DigestBytes(r.Beside[name])
	}
	for _, use := range r.Secrets {
		p[r.Name+": secret "+use.Name] = m.secretDigest(use)
	}
	for _, use := range r.Volumes {
		p[r.Name+": volume "+use.Name] = Digest(m.mount(use))
	}
	if len(r.Env) > 0 {
		p[r.Name+": env"] = Digest(r.Env)
	}
	m.fixed[r.Name] = p
	return p
}

// secretDigest returns the digest of how a role reads a secret. A secret in another format, or of which
// nodes begin to have values of their own, has a new value.
func (m *Builder) secretDigest(use site.SecretUse) string {
	if x, ok := m.Site.Secret(use.Name); ok && x.Format+x.Per != "" {
		return Digest([]any{use.Owner, use.Mode, x.Format, x.Per})
	}
	return Digest([]any{use.Owner, use.Mode})
}

// ActiveParts returns what roles do only on a live node, or nil if nothing.
func ActiveParts(roles []*site.Role) PartDigests {
	p := PartDigests{}
	for _, r := range roles {
		for _, s := range r.Steps {
			if s.When == site.Active {
				p[r.Name+": step "+s.Name] = Digest([]any{s.Script, s.Interpreter, s.User})
			}
		}
		for _, name := range r.Active {
			p[r.Name+": service "+name] = ""
		}
	}
	if len(p) == 0 {
		return nil
	}
	return p
}

// checks removes the line numbers, which do not affect what is checked.
func checks(list []site.HealthCheck) []site.HealthCheck {
	plain := append([]site.HealthCheck(nil), list...)
	for i := range plain {
		plain[i].Line = 0
	}
	return plain
}
