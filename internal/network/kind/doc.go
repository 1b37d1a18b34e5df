// Package kind makes a network of each kind on a host, and attaches containers to it. There is a
// file for each kind. Packages that make no networks use site.NetworkKind, which describes the
// networks of a kind.
//
// Every network has one link on the host that carries its mark (site.BridgeName, decision 18). Its
// type depends on the network's kind:
//
//	bridge     a bridge, with the links of nodes as ports
//	routed     a bridge without ports, for the gateway's address; nodes' links have routes
//	macvlan    a macvlan of the host's own, beside those of the nodes
//	exclusive  a bridge without ports, for the mark alone
//	sriov      the same
//	vethpair   the same
//
// A bridge without ports serves the same purpose as dummy(4), and every host with networks has
// bridges.
//
// # Lost and changed links
//
// The former state of a virtual function is recorded in a file (package host/sriov), because the
// card keeps settings of it that do not move with its interface.
//
// The alias of an exclusive interface moves with it into the node and back, even if the kernel
// returns the interface under another name after node and monitor were killed. A node can lose a
// link, for example when the node with the other end of its veth pair was killed. /proc/PID/net/dev
// shows this, and the node is restarted. For a veth pair, the plan checks that running nodes have
// their ends (plan.IsPassedThrough). If a network changes to another type of link, the plan removes
// and recreates it, and stops its nodes in between. Undo does the same in reverse.
package kind
