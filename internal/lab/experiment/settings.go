package experiment

import (
	"maps"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/strict"
	"orrery/internal/text/pattern"
)

// missingEngines returns known engines that this version of Orrery does not support. An experiment
// with one runs without that setting, and the report says so.
func missingEngines() map[string]string {
	return map[string]string{
		"openvz": "OpenVZ", "vserver": "Linux-VServer", "incus": "Incus", "proxmox": "Proxmox VE", "docker": "Docker",
	}
}

// networks returns the networks of containers, and known but unsupported ones with the reason.
func networks() (here []string, missing map[string]string) {
	return []string{Veth, Routed, Macvlan, Exclusive}, map[string]string{
		"sriov": "the lab has no setting for virtual functions; network = \"exclusive\" with interface = \"…\" uses an existing one",
	}
}

// settings reads [setting.*].
func (r *reading) settings() {
	for _, key := range r.tables(r.file.Settings, "setting", "[setting.veth]") {
		at := r.file.Settings.Keys[key]
		var t settingTable
		strict.Table(at, "setting."+key, r.addMistake, &t)
		if strings.HasPrefix(key, Bare) && !validName().MatchString(key) || key == Bare {
			r.addMistake(at, mistake("setting %q always exists and cannot be declared", key).Try("remove it"))
			continue
		}
		if r.checkName(at, "setting", key) {
			r.experiment.Settings = append(r.experiment.Settings, r.setting(key, at, &t))
		}
	}
	r.checkLimits()
}

// maxTables limits the number of settings, each of which has a network, and of tests.
const maxTables = 100

// tables returns the names of the tables within a table, which may be absent.
func (r *reading) tables(at *strict.Node, what, example string) []string {
	if at == nil {
		return nil
	}
	if _, ok := at.Value.(map[string]any); !ok {
		r.addMistake(at, mistake("%s must be tables, not %s", what, strict.Describe(at.Value)).Try("write %s", example))
		return nil
	}
	if len(at.Order) > maxTables {
		r.addMistake(at, mistake("there are %d %ss; the maximum is %d", len(at.Order), what,
			maxTables).Try("split it into several experiments"))
		return nil
	}
	var names []string
	for _, key := range at.Order {
		if _, ok := at.Keys[key].Value.(map[string]any); ok {
			names = append(names, key)
		} else {
			r.addMistake(at.Keys[key], mistake("%s.%s must be a table, not %s", what, key,
				strict.Describe(at.Keys[key].Value)).Try("write %s", example))
		}
	}
	return names
}

func (r *reading) setting(key string, at *strict.Node, t *settingTable) Setting {
	s := Setting{
		Name: key, Engine: valueOr(t.Engine, site.LXC), Network: valueOr(t.Network, ""), CPU: t.CPU,
		Interface: valueOr(t.Interface, ""), Privileged: t.Privileged,
		Type: t.Type, Disk: t.Disk, Devices: t.Devices, Cache: t.Cache, AIO: t.AIO,
		Limits: site.Limits{Cpus: t.Cpus, Pin: t.Pin, Memory: int64(t.Memory), Pids: t.Pids},
	}
	if t.Swap != nil {
		swap := int64(*t.Swap)
		s.Limits.Swap = &swap
	}
	if s.Network == "" && !r.bad[at.At("network")] {
		s.Network = defaultNetwork(s.Engine)
	}
	if s.Virtual() && s.Limits.Memory == 0 {
		s.Limits.Memory = site.DefaultVMMemory
	}
	r.network(at, &s)
	r.engine(at, &s)
	r.disk(at, &s)
	r.xen(at, &s)
	if t.Missing != nil {
		if s.Missing = *t.Missing; strings.TrimSpace(s.Missing) == "" && !r.bad[at.At("missing")] {
			r.addMistake(at.At("missing"), mistake("missing has no reason").Try("write the reason, or remove it"))
		}
	}
	return s
}

func (r *reading) engine(at *strict.Node, s *Setting) {
	missing := missingEngines()
	switch what, known := missing[s.Engine]; {
	case slices.Contains(site.Engines, s.Engine) || r.bad[at.At("engine")]:
	case known:
		s.Missing = "this Orrery does not support " + what + " yet"
	default:
		all := append(slices.Sorted(maps.Keys(missing)), site.Engines...)
		r.addMistake(at.At("engine"), withSuggestion(mistake("engine %q is unknown", s.Engine), s.Engine, all))
	}
}

// defaultNetwork returns the default network of an engine.
func defaultNetwork(engine string) string {
	switch engine {
	case site.KVM:
		return site.Virtio
	case site.Xen:
		return site.Vif
	}
	return Veth
}

// interfaceName matches names that the kernel accepts.
var interfaceName = pattern.New(`^[^\s/:"'\\]{1,15}$`)

func (r *reading) network(at *strict.Node, s *Setting) {
	here, elsewhere := networks()
	_, noEngine := missingEngines()[s.Engine]
	machine := slices.Contains(site.NICModels, s.Network)
	switch why, known := elsewhere[s.Network]; {
	case s.Engine == site.Xen && s.Network == site.Vif:
	case s.Engine == site.Xen && slices.Contains(append(here, site.NICModels...), s.Network):
		r.addMistake(at.At("network"), mistake("network = %q does not apply to Xen guests",
			s.Network).Try("write network = %q, or remove it", site.Vif))
	case r.bad[at.At("network")] || noEngine && machine: // the engine is missing
	case machine && !s.Virtual():
		r.addMistake(at.At("network"), mistake("network = %q applies to virtual machines",
			s.Network).Try("write engine = %q, or network = %q", site.KVM, Veth))
	case s.Virtual() && slices.Contains(here, s.Network):
		r.addMistake(at.At("network"), mistake("network = %q applies to containers", s.Network).Try("use %s",
			strings.Join(site.NICModels, ", ")))
	case slices.Contains(here, s.Network) || machine:
	case known:
		s.Missing = why
	default:
		all := slices.Concat(slices.Sorted(maps.Keys(elsewhere)), here, site.NICModels)
		r.addMistake(at.At("network"), withSuggestion(mistake("network %q is unknown", s.Network), s.Network, all))
	}
	where, written := at.Keys["interface"]
	switch {
	case !written || r.bad[where]:
	case !interfaceName().MatchString(s.Interface) || strings.Trim(s.Interface, ".") == "":
		r.addMistake(where, mistake("interface = %q is not a valid interface name", s.Interface).
			Try("see ip link; without interface, one end of a veth pair takes its place"))
	case s.Virtual():
		r.addMistake(where, mistake("network = %q uses no interface of the host", s.Network).Try("remove it"))
	case s.Bridged() || s.Network == Routed:
		r.addMistake(where, mistake("network = %q uses no interface of the host",
			s.Network).Try("remove it, or write network = %q or %q", Macvlan, Exclusive))
	}
}

// withSuggestion adds the nearest permitted value to a mistake, or all of them.
func withSuggestion(p *problem.Problem, given string, all []string) *problem.Problem {
	if nearest := problem.Suggest(given, all); nearest != "" {
		return p.Try("did you mean %q?", nearest)
	}
	return p.Try("known: %s", strings.Join(all, ", "))
}

// engineOf returns the engine whose rules apply to a setting. For an unsupported engine, these are
// the rules of containers.
func engineOf(s Setting) string {
	if s.Virtual() {
		return s.Engine
	}
	return site.LXC
}

// checkLimits checks the future nodes of the settings and their image by the rules for sites.
func (r *reading) checkLimits() {
	s := &site.Site{Name: "lab", Hosts: []site.Host{{Name: "local", Address: "local"}}, Images: []site.Image{
		{Name: "debian", Suite: defaultSuite, Components: r.experiment.Components, Packages: r.experiment.Packages}}}
	for i, one := range r.experiment.Settings {
		s.Nodes = append(s.Nodes, site.Node{Name: "s-" + one.Name, ID: i + 1, Image: "debian", Engine: engineOf(one),
			Privileged: one.Privileged, Limits: one.Limits, VM: one.guestVM()})
	}
	for _, m := range check.Check(s) {
		at := r.root
		switch {
		case len(m.Key) > 2 && m.Key[0] == "image":
			at = r.root.At(m.Key[2])
		case len(m.Key) > 1 && m.Key[0] == "node":
			at = r.file.Settings.Keys[strings.TrimPrefix(m.Key[1], "s-")]
		}
		if len(m.Key) > 2 && m.Key[0] == "node" {
			key := m.Key[len(m.Key)-1]
			if key == "vm" { // a setting has only one key of it
				key = "cpu"
			}
			at = at.At(key)
		}
		if !r.bad[at] {
			r.addMistake(at, mistake("%s", strings.Replace(m.What, "node s-", "setting ", 1)).Try("%s", m.Cure))
		}
	}
	r.checkPins()
}

// checkPins reports processors that the host does not have.
func (r *reading) checkPins() {
	if r.processors == "" {
		return
	}
	for _, s := range r.experiment.Settings {
		at := r.file.Settings.Keys[s.Name].At("pin")
		if lacks := site.MissingProcessors(s.Limits.Pin, r.processors); lacks != "" && !r.bad[at] {
			r.addMistake(at, mistake("setting %s is pinned to processors %s, but this host has only %s and lacks %s", s.Name,
				s.Limits.Pin, r.processors, lacks).
				Try("name processors from %s", r.processors))
		}
	}
}
