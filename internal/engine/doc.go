// Package engine defines the interface of all engines, which create and run nodes. Packages lxc,
// kvm and xen implement it with containers and virtual machines, package fake implements it in
// memory, and package enginetest tests them all.
//
// Create makes a stopped node from a spec whose layers are in the store. Start boots the node, and
// Runner then runs commands in it. SetProgress records how far its configuration has come. Change updates
// its limits, interfaces and mounts. Stop shuts it down, and Destroy removes it. List returns the
// existing nodes and their states, so that a plan can compare them with the declared ones.
//
// Each optional ability of an engine is an interface of its own (Replacer, Freezer, Remounter, …).
// Callers find out with a type assertion or by Capabilities whether an engine implements it, and do
// without it if the engine does not.
//
// # Adding an engine
//
// If nodes of the engine are made of layers, embed nodedir.Nodes. It implements Create, SetProgress,
// Replacer, Layered, Idmapper and Injector, and you write the part that runs nodes. Otherwise
// implement the nine methods of Engine and, where it applies:
//
//   - Replacer, if a private layer can be set aside;
//   - Idmapper, if nodes see the host's files with other user ids;
//   - Injector, if files can be put into a stopped node;
//   - Sweeper, if a killed run can leave processes or mounts behind.
//
// Add the engine to engine/all. Its Capabilities are observed with the host, and plans respect
// them. If the engine cannot change something on a running node, the plan stops and starts the node
// instead, and says why.
//
// Run enginetest.Run from a test of the engine, with a Fixture. The suite asks the node itself
// where it can (which address is on the interface, which limit the kernel enforces), interrupts
// operations, and makes and breaks many nodes at once. Tests that leave a running node unchanged
// share one (onOne).
//
// Package fake passes the suite in memory. It also passes it with nodes on disk (fake.OnDisk), so
// that snapshots, backups and the operations of a site can be tested on them. Tests can inject
// failures into it. The property tests of package plan do so: they carry out plans with the real
// worker, on random sites with random failures, and check that up reaches the declared state and
// that a second plan is empty.
package engine
