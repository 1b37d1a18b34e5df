package plan

import (
	"fmt"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A change is the difference between an existing node and the desired one.
type change struct {
	host   *observe.Host
	node   *site.Node
	wanted *spec.Node
	has    *observe.Node // nil if the node does not exist
}

// incompatibility returns why an existing node cannot become the desired one and must be removed first, or ""
// if it can.
func (c *change) incompatibility() string {
	current, wanted := c.has, c.wanted
	switch {
	case current.State == observe.Broken:
		return "incomplete"
	case current.ID != wanted.ID:
		return fmt.Sprintf("id changed from %d to %d", current.ID, wanted.ID)
	case current.Engine != wanted.Engine:
		return fmt.Sprintf("engine changed from %s to %s", current.Engine, wanted.Engine)
	case !c.capabilities().Keep && c.replaceReason() != "":
		return c.replaceReason() + "; the engine " + current.Engine + " cannot undo a replacement"
	}
	return ""
}

// capabilities returns the capabilities of the existing node's engine.
func (c *change) capabilities() observe.Capabilities { return c.host.Engines[c.has.Engine] }

func (c *change) replaceReason() string { return stand.LayerChange(&c.has.Node, c.wanted) }

// diskHotplug describes how the disks of a machine change while it runs. It returns "" if they do not
// change or the machine must be restarted for it.
func (c *change) diskHotplug() string {
	current, wanted := c.has.VM, c.wanted.VM
	if c.has.State != observe.Running || !c.capabilities().PlugDisk ||
		spec.Digest(current.Fixed()) != spec.Digest(wanted.Fixed()) {
		return ""
	}
	if how, live := current.DiskChange(wanted); live {
		return how.String()
	}
	return ""
}

// nicHotplug returns how the interfaces of a machine change while it runs, or the zero value if the
// machine must be restarted for it.
func (c *change) nicHotplug() (none spec.NICChange) {
	if c.has.State != observe.Running || !c.capabilities().PlugNIC {
		return none
	}
	if how, live := c.has.NICChange(c.wanted, c.has.Doubt); live {
		return how
	}
	return none
}

// hasMisplacedLink reports whether a link that stays is not on its bridge.
func (c *change) hasMisplacedLink(wires spec.NICChange) bool {
	stay := func(n *spec.Node) []spec.NIC {
		return spec.WithoutNICs(spec.WithoutTraffic(n.NICs), slices.Concat(wires.In, wires.Out))
	}
	return !slices.Equal(stay(&c.has.Node), stay(c.wanted))
}

// comparedNICs returns the interfaces to compare. It leaves out the bridges if the engine can move links
// while the node runs.
func (c *change) comparedNICs(n *spec.Node) []spec.NIC {
	if c.has.State != observe.Running || !c.capabilities().MoveNIC {
		return spec.WithoutTraffic(n.NICs)
	}
	return spec.WithoutBridges(n)
}
