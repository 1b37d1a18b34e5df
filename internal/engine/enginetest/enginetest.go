// Package enginetest is the test suite for the contract of package engine. Every engine must pass
// it.
//
// It asks the node itself wherever it can: a node with an address must have that address on its
// interface. What cannot be asked of an engine that runs nothing is skipped, with the reason.
package enginetest

import (
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Fixture is an engine that is ready for use, and what the suite needs with it.
type Fixture struct {
	Engine engine.Engine
	Site   string // of all nodes of the suite

	// Node returns the spec of a node that does not exist. It is unprivileged, without limits and
	// volumes. Its base layer is in the store and is Debian. It has at least one interface, on a
	// network that exists.
	Node func(name string, id int) *spec.Node

	// Bridge is a second bridge, on which nodes may have the same addresses as on the first. If it
	// is "", moving interfaces is not tested.
	Bridge string
	// ConnectToKind puts the interface of a node on an existing network of a kind other than a bridge. Nodes
	// with the same id must get the same address. If it is nil, the engine's nodes can be only on
	// bridges.
	ConnectToKind func(t *testing.T, n *spec.Node, kind string)
	// Kinds are the kinds of networks that the engine supports besides bridges, or nil for all
	// kinds.
	Kinds []string
	// Reboot makes a running node reboot by itself and waits until it has, or is nil if nodes do
	// not reboot.
	Reboot func(t *testing.T, ref engine.Ref)
	// Relayer changes the layers of the node to others in the store, or is nil if Replace is not
	// tested.
	Relayer func(n *spec.Node)
	// InForce returns the limits of a running node from the kernel, or is nil if there is no
	// kernel.
	InForce func(t *testing.T, ref engine.Ref) site.Limits
	// Break leaves a node as an interrupted Create would, or is nil if an interrupted Create never
	// leaves a half made node.
	Break func(t *testing.T, n *spec.Node)
	// Serve makes a running node answer each connection to a TCP port with text. If it is nil, the
	// suite runs Python in the node.
	Serve func(t *testing.T, ref engine.Ref, port int, text string)
	// Within is the time limit of any operation, or 0 for a minute.
	Within time.Duration
	// Kernel is set if nodes run on a real kernel, so that their /proc can be read.
	Kernel bool
}

// Run runs the suite. It calls fixture for each test.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"Life", life},
		{"CreateTwice", createTwice},
		{"Missing", missing},
		{"ListBySite", listBySite},
		{"Glance", glance},
		{"Again", again},
		{"Data", data},
		{"SharedVolume", sharedVolume},
		{"Limits", limits},
		{"LimitsOfStopped", limitsOfStopped},
		{"Reshape", reshape},
		{"Unprivileged", unprivileged},
		{"SetProgress", mark},
		{"Parallel", parallel},
		{"Broken", broken},
		{"Cancelled", cancelled},
		{"Replace", replace},
		{"ReplaceSettled", replaceSettled},
		{"ReplaceTwice", replaceTwice},
		{"MoveNIC", moveNIC},
		{"Routed", routed},
		{"Macvlan", macvlan},
		{"Exclusive", exclusive},
		{"Remount", remount},
		{"RemountCopy", remountCopy},
		{"RemountBusy", remountBusy},
		{"RemountStopped", remountStopped},
		{"FrozenEnds", frozenEnds},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(&suite{T: t, Fixture: fixture(t)})
		})
	}
	t.Run("Running", func(t *testing.T) {
		onOne(&suite{T: t, Fixture: fixture(t)})
	})
}

// onOne runs the tests that need a running node and leave it running, and last the test that stops
// it. They share one node, because booting takes most of the time with machines in emulation.
func onOne(s *suite) {
	n := s.running("running", 10)
	for _, c := range []struct {
		name string
		test func(*suite, *spec.Node)
	}{
		{"Identity", identity},
		{"Command", command},
		{"CommandFails", commandFails},
		{"CommandCancelled", commandCancelled},
		{"Put", put},
		{"PutLink", putLink},
		{"PutWhileRead", putWhileRead},
		{"Dial", dial},
		{"Limits", limitsOfRunning},
		{"Reshape", reshapeRunning},
		{"MoveNowhere", moveNowhere},
		{"Freeze", freeze},
		{"View", view},
		{"Layered", layered},
		{"Stop", stopEndsCommands},
	} {
		s.Run(c.name, func(t *testing.T) {
			c.test(&suite{T: t, Fixture: s.Fixture}, n)
		})
	}
}
