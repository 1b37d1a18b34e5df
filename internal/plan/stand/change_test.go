package stand_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/device"
	"orrery/internal/site/spec"
)

// TestChanges: which changes recreate a node, stop it, or are done while it runs. Equivalent
// declarations are no change.
func TestChanges(t *testing.T) {
	const layer, shape, limits, other = "layer", "shape", "limits", "other"
	for what, c := range map[string]struct {
		change func(*spec.Node)
		does   string // "" for nothing
		why    string
	}{
		"nothing":         {func(*spec.Node) {}, "", ""},
		"a bridge":        {func(n *spec.Node) { n.NICs[0].Bridge = "other" }, "", ""}, // links are moved
		"live":            {func(n *spec.Node) { n.Staged = true }, "", ""},
		"base":            {func(n *spec.Node) { n.Base = "other" }, layer, "base image changed"},
		"disk":            {func(n *spec.Node) { n.VM.Disk = site.RawFile }, layer, "private disk changed"},
		"use of an image": {func(n *spec.Node) { n.Disk.Guest = site.NoGuest }, layer, "use of the disk image changed"},
		"kernel":          {func(n *spec.Node) { n.Kernel = "other" }, layer, "kernel changed"},
		"layer": {func(n *spec.Node) { n.Layer, n.Parts = "other", spec.PartDigests{"apt": "jq"} }, layer,
			"role layer changed: apt changed"},
		"unknown of it": {func(n *spec.Node) { n.Layer = "other" }, layer, "role layer changed"},
		"parts alone":   {func(n *spec.Node) { n.Parts = spec.PartDigests{"apt": "jq"} }, "", ""},
		"privileges":    {func(n *spec.Node) { n.Privileged = true }, shape, "privileges changed"},
		"system calls": {func(n *spec.Node) { n.Syscalls = []string{site.IOUring} }, shape,
			"allowed system calls changed"},
		"devices": {func(n *spec.Node) { n.Devices = []device.Device{{Path: "/dev/fuse"}} }, shape, "devices changed"},
		"an address": {func(n *spec.Node) { n.NICs[0].Address = netip.MustParsePrefix("10.0.0.9/24") }, shape,
			"network interfaces changed"},
		"volumes":      {func(n *spec.Node) { n.Mounts = nil }, shape, "volumes changed"},
		"hardware":     {func(n *spec.Node) { n.VM.CPU = "max" }, shape, "virtual hardware changed"},
		"guest of Xen": {func(n *spec.Node) { n.Xen.Type = "pvh" }, shape, "Xen guest type changed"},
		"machine-id":   {func(n *spec.Node) { n.MachineID = "other" }, shape, "machine-id changed"},
		"memory":       {func(n *spec.Node) { n.Limits.Memory = 1 << 30 }, limits, "memory changed"},
		"swap":         {func(n *spec.Node) { n.Limits.Swap = new(int64) }, limits, "swap changed"},
		"pin":          {func(n *spec.Node) { n.Limits.Pin = "0-2" }, limits, "pin changed"},
		"the same pin": {func(n *spec.Node) { n.Limits.Pin = "0,1" }, "", ""},
		"autostart":    {func(n *spec.Node) { n.Autostart = true }, other, "autostart changed"},
		"services":     {func(n *spec.Node) { n.Config.Services = []string{"b"} }, other, "services changed"},
		"health":       {func(n *spec.Node) { n.Config.Health = "other" }, other, "health checks changed"},
		"a file":       {func(n *spec.Node) { n.Config.Parts = spec.PartDigests{"file /a": "2"} }, other, "file /a changed"},
	} {
		old := spec.Node{
			Name: "web", Base: "base", Layer: "layer", Parts: spec.PartDigests{"apt": "vim"}, MachineID: "id",
			Limits: site.Limits{Pin: "0-1"}, VM: site.VM{Disk: site.QCow2},
			NICs: []spec.NIC{{Network: "lan", Bridge: "br"}}, Mounts: []spec.Mount{{Volume: "data", Path: "/srv"}},
			Config: spec.Config{Services: []string{"a"}, Health: "h", Parts: spec.PartDigests{"file /a": "1"}},
		}
		changed := old
		changed.NICs = slices.Clone(old.NICs)
		c.change(&changed)
		got := map[string]string{
			layer: stand.LayerChange(&old, &changed), shape: stand.ShapeChange(&old, &changed, spec.WithoutBridges),
			limits: stand.LimitsChange(old.Limits, changed.Limits),
		}
		for kind, why := range got {
			want := ""
			if kind == c.does {
				want = c.why
			}
			if why != want && (kind != shape || c.does != layer) { // another disk is other hardware, too
				t.Errorf("%s: the change of its %s is %q, not %q", what, kind, why, want)
			}
		}
		if why := stand.UpdateReason(&old, &changed); why != c.why {
			t.Errorf("%s: it is outdated because of %q, not %q", what, why, c.why)
		}
	}
}

// TestDiskChange: no disk becomes smaller, unless the whole node is recreated.
func TestDiskChange(t *testing.T) {
	old := spec.Node{Name: "vm", Base: "base",
		VM: site.VM{Disk: site.QCow2, Size: 8 << 30, Disks: []site.Drive{{Name: "data", Disk: site.RawFile, Size: 4 << 30}}}}
	for what, c := range map[string]struct {
		change func(*spec.Node)
		wrong  bool
	}{
		"the same":               {func(*spec.Node) {}, false},
		"larger":                 {func(n *spec.Node) { n.VM.Size = 9 << 30 }, false},
		"smaller":                {func(n *spec.Node) { n.VM.Size = 7 << 30 }, true},
		"another one is smaller": {func(n *spec.Node) { n.VM.Disks[0].Size = 1 << 30 }, true},
		"smaller and anew":       {func(n *spec.Node) { n.VM.Size, n.Base = 7<<30, "other" }, false},
	} {
		changed := old
		changed.VM.Disks = slices.Clone(old.VM.Disks)
		c.change(&changed)
		if err := stand.DiskChange(&old, &changed); problem.Is(err, problem.Mistake) != c.wrong || err != nil &&
			!strings.Contains(err.Error(), "vm") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSpell: a node in quarantine is returned as its release declares it if the declaration would
// make the same, whatever the MTUs of the quarantine. Otherwise the difference is described.
func TestSpell(t *testing.T) {
	declared := func() *site.Site {
		return &site.Site{
			Name: "karoo", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
			Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24")}},
			Roles: []site.Role{{Name: "db",
				Volumes: []site.VolumeUse{{Name: "rows", Path: "/srv", Exclusive: true, Quarantine: site.CopySnapshot}}}},
			Nodes: []site.Node{{
				Name: "db", ID: 11, Release: 700, Image: "debian", Engine: "fake", Roles: []string{"db"},
				NICs: []site.NIC{{Network: "lan", Address: netip.MustParseAddr("10.0.0.11")}},
			}},
		}
	}
	made := func(stage int) spec.Node {
		s := declared()
		s.Stage = stage
		n, err := spec.NewBuilder(s).Node(&s.Nodes[0])
		if err != nil {
			t.Fatal(err)
		}
		return *n
	}
	staged, retired := made(700), stand.AsRetired(made(0))
	for what, c := range map[string]struct {
		has    spec.Node
		change func(node *spec.Node, of *site.Site)
		why    string
	}{
		"as it was staged":  {has: staged, change: func(*spec.Node, *site.Site) {}},
		"as it was retired": {has: retired, change: func(*spec.Node, *site.Site) {}},
		"other frames":      {has: staged, change: func(node *spec.Node, _ *site.Site) { node.NICs[0].MTU = 1400 }},
		"gone": {has: staged, change: func(_ *spec.Node, of *site.Site) { of.Nodes = nil },
			why: "it is no longer declared"},
		"of another release": {has: staged, change: func(_ *spec.Node, of *site.Site) { of.Nodes[0].Release = 701 },
			why: "it is no longer declared"},
		"another id": {has: staged, change: func(_ *spec.Node, of *site.Site) { of.Nodes[0].ID = 12 },
			why: "its id changed"},
		"another engine": {has: staged, change: func(node *spec.Node, _ *site.Site) { node.Engine = "lxc" },
			why: "its engine changed"},
		"another base": {has: staged, change: func(node *spec.Node, _ *site.Site) { node.Base = "other" },
			why: "base image changed"},
		"one more network": {has: staged, change: func(node *spec.Node, _ *site.Site) {
			node.NICs = append(node.NICs, spec.NIC{Network: "data"})
		}, why: "network interfaces changed"},
		"one network less": {has: staged, change: func(node *spec.Node, _ *site.Site) { node.NICs = nil },
			why: "network interfaces changed"},
		"an address": {has: staged, change: func(node *spec.Node, _ *site.Site) {
			node.NICs[0].Address = netip.MustParsePrefix("10.0.0.9/24")
		}, why: "network interfaces changed"},
		"half of its volumes": {has: staged, change: func(node *spec.Node, _ *site.Site) { node.Mounts[0].Release = 701 },
			why: "a change of its volumes was interrupted"},
		"of a site that is gone": {has: staged, why: "its site directory as staged is unknown"},
	} {
		current, of := c.has, declared()
		current.NICs, current.Mounts = slices.Clone(current.NICs), slices.Clone(current.Mounts)
		if c.change == nil {
			of = nil
		} else {
			c.change(&current, of)
		}
		e, why, err := stand.AsDeclared(&current, of, nil)
		if err != nil || why != c.why {
			t.Errorf("%s: %q, not %q (%v)", what, why, c.why, err)
			continue
		}
		if why == "" && (e.Node == nil || !e.Node.Staged || !slices.Equal(e.Node.Mounts, current.Mounts) ||
			e.Of.Name != "db" ||
			e.Site != of || len(e.Layers) == 0) {
			t.Errorf("%s: it is %+v", what, e)
		}
	}
}
