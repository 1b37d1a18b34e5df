package release

import (
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestMixedSet: containers and virtual machines switch together without being stopped, as far as
// their engines support it.
func TestMixedSet(t *testing.T) {
	node := func(engine string, mounts ...spec.Mount) *observe.Node {
		return &observe.Node{Node: spec.Node{Name: engine, Engine: engine, Mounts: mounts,
			NICs: []spec.NIC{{Network: "lan"}}}}
	}
	volume := spec.Mount{Volume: "data"}
	for _, c := range []struct {
		name     string
		machine  observe.Capabilities
		mounts   []spec.Mount
		disk     string
		standing string
	}{
		{"both move", observe.Capabilities{MoveNIC: true}, nil, "", ""},
		{"a volume", observe.Capabilities{MoveNIC: true}, []spec.Mount{volume}, "", "engine kvm cannot change the volumes"},
		{"a volume that it can change", observe.Capabilities{MoveNIC: true, Remount: true}, []spec.Mount{volume}, "", ""},
		{"a disk", observe.Capabilities{MoveNIC: true, Remount: true}, nil, site.QCow2, ""},
		{"a volume above a disk", observe.Capabilities{MoveNIC: true, Remount: true}, []spec.Mount{volume}, site.QCow2,
			"node kvm writes to a disk"},
		{"links stay", observe.Capabilities{}, nil, "", "engine kvm cannot move the links"},
	} {
		h := &observe.Host{Engines: map[string]observe.Capabilities{site.LXC: {MoveNIC: true, Remount: true},
			site.KVM: c.machine}}
		machine := node(site.KVM, c.mounts...)
		machine.VM.Disk = c.disk
		set := []*member{{to: node(site.LXC, volume)}, {to: machine, olds: []*observe.Node{node(site.LXC)}}}
		if why := restartReason(h, set); !strings.Contains(why, c.standing) || (why == "") != (c.standing == "") {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}
