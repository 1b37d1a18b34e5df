// Package engine is the contract of everything that makes nodes. Packages lxc, kvm and xen implement it with
// containers and virtual machines, package fake in memory, and package enginetest checks them all.
//
// A node is made stopped with Create, from a spec whose layers are in the store. Start boots it, and Runner
// then runs commands in it. Mark records how far its configuration has come, Change updates its limits,
// interfaces and mounts, Stop shuts it down, and Destroy removes it. List returns the nodes that exist and
// their states, so that a plan can compare them with what is declared.
//
// Everything else that an engine can do is an interface of its own (Keeper, Freezer, Remounter, …). Callers
// ask for it by a type assertion or by Capabilities, and do without it if it is missing.
//
// # Adding an engine
//
// If nodes of the engine stand on layers, embed nodedir.Nodes. It implements Create, Mark, Keeper, Layered,
// Idmapper and Injector; you write what runs nodes. Otherwise implement the nine methods of Engine and, where
// it applies:
//
//   - Keeper, if a private layer can be set aside;
//   - Idmapper, if nodes see the host's files with other user ids;
//   - Injector, if files can be put into a stopped node;
//   - Sweeper, if a killed run can leave processes or mounts behind.
//
// Add the engine to engine/all. Its Capabilities are observed with the host, and plans respect them: if the
// engine cannot change something on a running node, the node is stopped and started instead, and the plan
// says why.
//
// Run enginetest.Run from a test of the engine, with a Fixture. The suite asks the node itself where it can
// (which address is on the interface, which limit the kernel enforces), interrupts operations, and makes and
// breaks many nodes at once. Tests that leave a running node unchanged share one (onOne).
//
// Package fake passes the suite in memory, and also with nodes on disk (fake.OnDisk), on which snapshots,
// backups and the operations of a site can be tested. Tests can order its failures. The property tests of
// package plan do so: they carry out their steps with the real worker, on random sites with random failures,
// and check that up reaches what is declared and that a second plan is empty.
package engine
