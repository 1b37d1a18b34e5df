package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan/rotation"
	"orrery/internal/plan/stand"
	"orrery/internal/site/spec"
)

// upNode plans the steps that make one node match the site. It returns the step that configures the
// node, if there is one. A stopped node without autostart is left stopped, unless the user selected
// it by name, it ran before, or its roles have yet to be applied.
func (u *nodePlanner) upNode() (configure int, planned bool) {
	wanted, current := u.wanted, u.has
	wasOn := current != nil && (current.Runs() || current.Resume)
	running := u.ensureDeclared() && current.State == observe.Running
	if !running {
		if !wanted.Autostart && !wasOn && u.up.goal.Nodes == nil && !u.fresh && current.Configured {
			return 0, false
		}
		u.step(StartNode, u.startReason(), "stop")
	}
	u.repair()
	reason := u.configureReason()
	if reason != "" {
		configure, planned = u.step(ConfigureNode, reason, "restore the previous files"), true
	}
	if wanted.Config.Health != "" && (len(u.steps) > 0 || current.Proven != wanted.Config.Health) {
		why := "check health"
		if len(u.steps) == 0 {
			why = "health not checked yet"
		}
		u.step(CheckNode, why, "")
	}
	if len(u.steps) > 0 {
		u.up.last[u.node.Name] = u.steps[len(u.steps)-1]
	}
	return configure, planned
}

// A nodePlanner is the unfinished chain of steps of one node.
type nodePlanner struct {
	change
	up         *sitePlanner
	before     []int // needs of the first step
	startNeeds []int // needs of the first step that is not a stop
	steps      []int
	fresh      bool       // the private layer is new
	less       *spec.Node // the node after interfaces were unplugged, or nil if none were
}

// step appends a step to the chain.
func (u *nodePlanner) step(kind Kind, reason, undo string) int {
	needs := slices.Clone(u.before)
	if len(u.steps) > 0 {
		needs = []int{u.steps[len(u.steps)-1]}
	}
	if kind != StopNode && kind != KillNode {
		needs = append(needs, u.startNeeds...)
		u.startNeeds = nil
	}
	s := Step{Kind: kind, Host: u.host.Name, Subject: u.node.Name, Reason: reason, Needs: needs, Undo: undo,
		Node: u.wanted}
	if u.has != nil {
		s.Old = &u.has.Node
		if kind == ReplaceNode || kind == StopNode || kind == KillNode || kind == ConfigureNode && u.restartsServices() {
			s.Disturbs = []string{u.node.Name}
		}
	}
	n := u.up.add(s)
	u.steps = append(u.steps, n)
	return n
}

// restartsServices reports whether configuring the running node restarts services. If only files with
// site.SourceFile.Restarts changed, it checks just the services that these name. Any other change may
// restart all services of its role and of roles that need it.
func (u *nodePlanner) restartsServices() bool {
	if u.has.State != observe.Running {
		return false
	}
	old, desired := &u.has.Config, &u.wanted.Config
	running := desired.Running(true)
	whole := u.fresh || !u.has.Configured || !u.wanted.Staged && !u.has.Active && isLiveOnly(u.wanted)
	if whole || !slices.Equal(old.Services, desired.Services) || !maps.Equal(old.Active, desired.Active) {
		return len(running) > 0
	}
	if len(spec.ChangedSecrets(old, desired)) > 0 {
		return len(running) > 0
	}
	for _, part := range spec.ChangedParts(old.Parts, desired.Parts) {
		services, exact := u.restartedBy(part)
		if !exact {
			return len(running) > 0
		}
		if slices.ContainsFunc(services, func(s string) bool { return slices.Contains(running, s) }) {
			return true
		}
	}
	return false
}

// restartedBy returns the services that a changed part of a configuration restarts, or false if the
// site does not declare them.
func (u *nodePlanner) restartedBy(part string) (services []string, exact bool) {
	if strings.HasPrefix(part, spec.AccessPart("")) { // sshd reads it at each login
		return nil, true
	}
	if _, added := u.has.Config.Parts[part]; !added {
		return nil, false
	}
	for _, r := range u.up.site.RolesOf(u.node) {
		for i := range r.Files {
			if f := &r.Files[i]; part == r.Name+": file "+f.Path {
				return f.Restarts, f.Restarts != nil
			}
		}
	}
	return nil, false
}

// repair plans the repair of a running node's drift, unless the node is recreated.
func (u *nodePlanner) repair() {
	if u.fresh || u.has == nil || len(u.has.Drift) == 0 {
		return
	}
	n := u.step(RepairNode, "drifted: "+observe.DescribeDrifts(u.has.Drift), "")
	u.up.Steps[n].Drift = u.has.Drift
	if slices.ContainsFunc(u.has.Drift, observe.Drift.Disrupts) {
		u.up.Steps[n].Disturbs = []string{u.node.Name}
	}
}

// stopIfRunning plans to stop the node if it runs.
func (u *nodePlanner) stopIfRunning(kind Kind, why string) {
	if u.has.Runs() {
		u.up.frees.addNode(u.host, &u.has.Node, u.step(kind, why, "start"))
	}
}

// ensureDeclared plans that the node exists in its declared form. It reports whether the node keeps the
// state that it was in.
func (u *nodePlanner) ensureDeclared() (undisturbed bool) {
	if u.has == nil {
		u.before = append(u.before, u.up.layers.planNode(u.host, u.node)...)
		u.step(CreateNode, "new", "destroy")
		u.fresh = true
		return false
	}
	if why := u.replaceReason(); why != "" {
		u.before = append(u.before, u.up.layers.planNode(u.host, u.node)...)
		kind := StopNode
		if !u.has.KeepsData() && !u.has.WritesDisks() {
			// Undo restores the node. Its guest may not yet have written out data that belongs on a
			// disk.
			kind = KillNode
		}
		u.stopIfRunning(kind, why)
		u.step(ReplaceNode, why+"; recreated, "+stand.Loss, "restore the previous layers")
		u.fresh = true
		return false
	}
	if why := u.reshapeReason(); why != "" {
		u.stopIfRunning(StopNode, why)
		u.step(ReshapeNode, why, "restore the previous interfaces and mounts")
		return false
	}
	var changes []string
	if why := stand.LimitsChange(u.has.Limits, u.wanted.Limits); why != "" || u.has.Autostart != u.wanted.Autostart {
		if why == "" {
			why = "autostart changed"
		} else if u.has.Runs() && !u.capabilities().LiveLimits {
			why += "; the engine " + u.has.Engine + " can limit only stopped nodes"
			u.stopIfRunning(StopNode, why)
			u.step(ReshapeNode, why, "restore the previous limits")
			return false
		}
		changes = append(changes, why)
	}
	if why := stand.TrafficChange(&u.has.Node, u.wanted); why != "" {
		changes = append(changes, why)
	}
	wires := u.nicHotplug()
	u.unplug(wires.Out)
	if how := u.diskHotplug(); how != "" {
		changes = append(changes, how)
	}
	if len(wires.In) > 0 {
		changes = append(changes, spec.DescribeNetworks("plugs", wires.In))
	}
	if len(changes) > 0 {
		n := u.step(LimitNode, strings.Join(changes, ", "), "restore the previous settings")
		if u.less != nil {
			u.up.Steps[n].Old = u.less
		}
	}
	if u.has.State == observe.Running && u.hasMisplacedLink(wires) {
		n := u.step(MoveLinks, "links are on the wrong networks", "move them back")
		u.up.Steps[n].Moves = []Move{{Old: &u.has.Node, New: u.wanted}}
	}
	return true
}

func (u *nodePlanner) reshapeReason() string {
	old := u.has.Node
	if u.diskHotplug() != "" {
		old.VM = u.wanted.VM
	}
	if !u.nicHotplug().IsZero() {
		old.NICs = u.wanted.NICs
	}
	return cmp.Or(stand.ShapeChange(&old, u.wanted, u.comparedNICs), u.relinkReason())
}

// unplug plans to remove interfaces from a running machine. This is a step of its own, before new
// interfaces are added. Other nodes may wait for the network or the address, and the new interfaces
// may wait for those nodes.
func (u *nodePlanner) unplug(nics []spec.NIC) {
	if len(nics) == 0 {
		return
	}
	ground := u.startNeeds
	u.startNeeds = nil
	n := u.step(LimitNode, spec.DescribeNetworks("unplugs", nics), "plug them again")
	u.startNeeds = ground
	less := *u.wanted
	less.VM, less.Limits, less.Autostart, less.NICs = u.has.VM, u.has.Limits, u.has.Autostart,
		spec.WithoutNICs(u.has.NICs, nics)
	u.up.Steps[n].Node, u.less = &less, &less
	u.up.frees.addLinks(u.host, &u.has.Node, nics, n)
}

// relinkReason returns why a running node must be restarted although its declaration is unchanged:
// because of its links, or because its state is unusable.
func (u *nodePlanner) relinkReason() string {
	if !u.has.Runs() {
		return ""
	}
	if why := u.has.RestartReason(); why != "" {
		return why
	}
	if len(u.has.Unlinked) > 0 {
		return "its link to network " + strings.Join(u.has.Unlinked, ", ") + " is missing"
	}
	for _, nic := range u.has.NICs {
		if u.up.networks.relinked[networkClaim(u.host.Name, nic.Network)] {
			return "network " + nic.Network + " is recreated"
		}
	}
	for _, s := range u.up.Steps {
		if s.Kind == MakeNetwork && s.Host == u.host.Name && s.OldNetwork == nil && s.Network.Kind == spec.VethPair &&
			isOn(&u.has.Node, s.Network) {
			return "network " + s.Subject + " is recreated"
		}
	}
	return ""
}

func (u *nodePlanner) startReason() string {
	switch {
	case u.has == nil:
		return "new"
	case len(u.steps) > 0:
		return "after the change"
	case u.has.State == observe.Frozen:
		return "frozen"
	case u.has.Resume:
		return "it ran before its move"
	}
	return "not running"
}

func (u *nodePlanner) configureReason() string {
	switch {
	case u.fresh && u.has == nil:
		if len(u.wanted.Config.Parts)+len(u.wanted.Config.Services) == 0 {
			return "boot"
		}
		return "apply roles"
	case u.fresh:
		return "apply roles again"
	case !u.has.Configured:
		return "not finished earlier"
	case !u.wanted.Staged && !u.has.Active && isLiveOnly(u.wanted):
		// A failed switch had retired it, and it did not run when the switch was undone.
		return "not active"
	}
	if why := spec.DescribeChanges(u.has.Config.Parts, u.wanted.Config.Parts); why != "" {
		return why
	}
	if why := rotation.Describe(&u.has.Config, &u.wanted.Config); why != "" {
		return why
	}
	if !slices.Equal(u.has.Config.Services, u.wanted.Config.Services) {
		return "services changed"
	}
	return spec.DescribeChanges(u.has.Config.Active, u.wanted.Config.Active)
}

// isLiveOnly reports whether a node has or does something that only live nodes may.
func isLiveOnly(n *spec.Node) bool {
	return len(n.Config.Active) > 0 || n.Exclusive()
}
