// Package handover decides how interrupted moves of nodes between hosts are finished. It is pure.
//
// The host that a node leaves records when it gives the node away, and to whom (given.json). The
// records of both hosts together determine the owner of the node:
//
//   - not given: it belongs to the first host, and what has arrived at the other is removed;
//   - given, and everything has arrived: it belongs to the other host;
//   - given, and not everything has arrived: the first host takes it back, after the other has
//     dropped its part;
//   - one of the two does not answer: the node is left alone.
//
// Releases of one node are handed over separately, so each is known by its id. Once a node was
// received, only another move takes it back, since it may have run. Decision 40 gives the reasons.
//
// It is a package of its own because package plan exports as many names as a reader can know.
package handover
