// Package kind makes a network of each kind on a host, and joins a container to it: a file for each kind. For
// packages that make none, site.NetworkKind describes the networks of a kind.
//
// Every network has one link on the host that carries its mark (site.BridgeName, decision 18). Its type
// depends on the network's kind:
//
//	bridge     a bridge, with the links of nodes as ports
//	routed     a bridge without ports, for the gateway's address; each link of a node stands alone and has a route
//	macvlan    a macvlan of the host's own, beside those of the nodes
//	exclusive  a bridge without ports, for the mark alone
//	vethpair   the same
//
// A bridge without ports serves as dummy(4) does elsewhere, and every host that has networks has bridges.
//
// # Lost and changed links
//
// The alias of an exclusive interface moves with it into the node and back, even if the kernel returns the
// interface under another name after node and monitor were killed. If a node has lost a link, as when the
// node with the other end of its veth pair was killed, /proc/PID/net/dev shows it, and the node is started
// anew. For a veth pair, the plan checks that running nodes have their ends (plan.PassedThrough). If a
// network becomes another kind of link, the plan ends it and makes it again, and stops its nodes in between;
// undo does the same backwards.
package kind
