// Package ports guards the bridge ports of nodes on this host. A node can send only under its own
// addresses, and only what an ordinary host sends. Decision 62 gives the reasons.
//
// One nftables table of the bridge family has all ports of all sites. Its sets list what each port
// may send as. Its rules are always the same: policy.go defines them as data, and rules.go compiles
// them for the kernel. A rule that accepts needs every field that it matches. So a frame that
// cannot be parsed (headers without end, a fragment without the header of its payload) is dropped,
// like everything that no rule accepts. Only later fragments of IPv6 pass unread, because the first
// one decides. The fast path is one lookup of port, MAC and address together. Before it, TCP meets
// two comparisons and UDP three. A frame that is not IPv4 goes to another chain.
//
// # BPDUs
//
// Tables of the bridge family do not see BPDUs on a bridge that takes part in a spanning tree.
// Ports of nodes are always on Orrery's bridges, which do not take part, and a bridge of the host
// is behind one. So the guard sees BPDUs. IPv4 frames of a node to bridge addresses
// (01:80:c2:00:00:0x) are dropped on the way to a wire, because a switch may close its port for the
// address.
//
// # Addresses of services
//
// The address of a service may move between nodes. The set moving lists it for the ports of all of them. It
// passes only while the port is in the set holding, too. A rule adds the port for a moment whenever the node
// advertises that it holds a service (VRRP). So the kernel closes the port of a holder that is frozen, or
// whose keepalived has died. Decision 101 gives the reasons.
//
// # Changes of the table
//
// The step that starts or changes a node adds its ports before the engine makes the links. It reads
// the rules and the elements of these ports only. The comment of a port's element in the set held
// contains a digest of everything that the sets list for the port. If the digest differs, or the
// rules are of another version, the whole table is read and repaired under the lock of the
// machine's networks. Adding ports shares that lock, so starting nodes do not wait for one another.
// Removing elements is slow, because the kernel waits for all processors. So ports of stopped nodes
// stay in the table, and a run removes the ports of destroyed nodes once, at its end. It removes no
// port whose node has a record or whose link exists, because a rebooting guest can lack its link
// for a moment.
package ports
