package fake

import (
	"fmt"
	"maps"
	"net/netip"

	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// doShared does a step that is about no single node; with a failure given, only half of it.
func (h *Host) doShared(s *plan.Step, halfway error) error {
	switch s.Kind {
	case plan.PrepareHost:
		if h.former == nil {
			h.former = maps.Clone(h.settings)
		}
		if halfway == nil {
			maps.Copy(h.settings, s.Settings)
		}
	case plan.RestoreHost:
		if halfway == nil && h.former != nil && len(h.networks) == 0 {
			h.settings, h.former = h.former, nil
		}
	case plan.BuildLayer:
		for _, digest := range s.Layer.Lower() {
			if !h.layers[digest] {
				return fmt.Errorf("layer %s: layer %s below it is not there", s.Layer.Title, digest)
			}
		}
		if halfway == nil { // atomic: a layer is there whole or not at all
			h.layers[s.Layer.Digest] = true
		}
	case plan.MakeNetwork:
		return h.makeNetwork(s, halfway)
	case plan.RemoveNetwork:
		return h.removeNetwork(s, halfway)
	case plan.WriteNames, plan.RestoreNames, plan.ForgetNames:
		h.doNames(s, halfway)
	case plan.RemoveVolume:
		if halfway == nil {
			h.removeVolume(s.Path)
		}
	case plan.MoveLinks:
		return h.moveLinks(s.Moves, halfway)
	case plan.CommitSwitch:
		if halfway == nil { // atomic: the record is replaced by a whole one
			h.releases = cloneOf(*s.Releases)
		}
	case plan.ForgetRelease:
		return h.forgetRelease(s.Release, halfway)
	default:
		return fmt.Errorf("a fake host cannot do %q", s.Kind)
	}
	return halfway
}

func (h *Host) makeNetwork(s *plan.Step, halfway error) error {
	made := *s.Network
	made.Bridge = site.BridgeName(made.Site, made.Name)
	if err := h.interfaces(made); err != nil {
		return err
	}
	if made.Kind == spec.VethPair {
		h.networks[made.Bridge] = made
		return halfway
	}
	subnet := netip.MustParsePrefix(made.Subnet)
	for _, n := range h.networks {
		if n.Kind == spec.VethPair {
			continue
		}
		if n.Bridge != made.Bridge && n.Gateway != "" && n.Gateway == made.Gateway && !n.Router && !made.Router && netip.MustParsePrefix(n.Subnet).Overlaps(subnet) {
			return fmt.Errorf("network %s: address %s is taken by network %s", made.Name, n.Gateway, n.Name)
		}
	}
	if halfway != nil {
		made.Gateway, made.NAT = "", false // the bridge is there, its address and rules are not
	}
	h.networks[made.Bridge] = made
	return halfway
}

func (h *Host) removeNetwork(s *plan.Step, halfway error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.nodes {
		for _, nic := range n.spec.NICs {
			if n.running() && (nic.Bridge == site.BridgeName(s.Network.Site, s.Network.Name) || n.spec.Takes(nic) && s.Network.Joins(nic.Parent)) {
				return fmt.Errorf("network %s: node %s is running on it", s.Subject, n.spec.Name)
			}
		}
	}
	for _, n := range h.networks {
		if s.Network.Joins(n.Parent) {
			return fmt.Errorf("network %s: network %s is on it", s.Subject, n.Name)
		}
	}
	key := site.BridgeName(s.Network.Site, s.Network.Name)
	if halfway == nil {
		delete(h.networks, key)
	} else if left, ok := h.networks[key]; ok {
		left.NAT, left.Gateway = false, ""
		h.networks[key] = left
	}
	return halfway
}

// doNames keeps what WriteNames replaces, so that it can be put back. Half written names are no names that any site has.
func (h *Host) doNames(s *plan.Step, halfway error) {
	switch {
	case s.Kind == plan.WriteNames && halfway == nil:
		if h.names != s.Names {
			h.before = h.names
		}
		h.names = s.Names
	case s.Kind == plan.WriteNames:
		// The files are written aside first.
	case halfway != nil:
		h.names = "half"
	case s.Kind == plan.ForgetNames:
		h.names, h.before = "", ""
	case h.names != s.Names: // of RestoreNames
		h.names, h.before = h.before, ""
	}
}
