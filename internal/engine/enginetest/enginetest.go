// Package enginetest is the test suite of the contract of package engine, which every engine
// passes.
//
// It asks the node itself wherever it can: a node that claims an address must have it on its
// interface. What cannot be asked of an engine that runs nothing is skipped, with the reason.
package enginetest

import (
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Fixture is an engine, ready for use, and what the suite needs beside it.
type Fixture struct {
	Engine engine.Engine
	Site   string // of all nodes of the suite

	// Node returns the spec of a node that does not exist: an unprivileged one without limits and volumes, whose
	// base layer is in the store (Debian, as every base image has it), and that has at least one interface, on a
	// network that exists.
	Node func(name string, id int) *spec.Node

	// Bridge is a second bridge, on which addresses may be the same as on that of the interface. "":
	// moving interfaces is not tested.
	Bridge string
	// Onto puts the interface of a node on a network of a kind other than a bridge, which is there; at
	// an address that is the same for nodes of the same id. nil: the engine's nodes are on bridges
	// only.
	Onto func(t *testing.T, n *spec.Node, kind string)
	// Kinds are those that the engine's nodes can be on, besides bridges; nil: all.
	Kinds []string
	// Reboot lets a running node reboot by itself and returns when it has. nil: nodes do not.
	Reboot func(t *testing.T, ref engine.Ref)
	// Relayer changes the layers of the node to others, which are in the store, or is nil if Replace
	// is not tested.
	Relayer func(n *spec.Node)
	// InForce returns the limits of a running node as the kernel has them, or is nil if there is no kernel.
	InForce func(t *testing.T, ref engine.Ref) site.Limits
	// Break makes a node as a Create that was interrupted leaves it. nil: no moment of Create leaves a
	// half made node.
	Break func(t *testing.T, n *spec.Node)
	// Serve lets a running node answer every connection to a TCP port with some text. nil: by Python in the node.
	Serve func(t *testing.T, ref engine.Ref, port int, text string)
	// Within is how long anything may take; 0: a minute.
	Within time.Duration
	// Kernel tells that nodes run on a real kernel, so that /proc of a node can be looked at.
	Kernel bool
}

// Run runs the suite; fixture is called for each of its tests.
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
		{"Mark", mark},
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

// onOne runs the tests that need a node that runs and leave it running, and last the one that stops
// it. They take turns on one node: with a machine in emulation, most of the time of a test is that
// in which the machine boots.
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
