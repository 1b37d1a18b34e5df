// Package rootfs assembles the root file system of a node.
//
// It consists of read-only layers, a private layer on top, directories of the host, and devices. An
// Overlay is plain data. Spawn mounts it: it moves one thread into a new mount namespace, mounts
// everything there, and starts the command from it. Within runs a function in such a namespace.
// MountsOf and MountSourcesOf list what is mounted where, in this namespace or in that of a process.
//
// # Idmapped mounts
//
// Each node has its own range of user ids. The trees are attached through idmapped mounts
// (mount_setattr(2)), and overlayfs goes on top, with layers and private layer mapped alike
// (ids.go, namespace.go). So privileged nodes, unprivileged nodes and nodes with different ranges
// share the same files, and no owner is ever changed on disk. This needs Linux 5.19. Decision 2
// gives the reasons.
//
// # A private mount namespace
//
// The mount namespace exists only for the node's monitor and its children. The host's mount table
// shows nothing of any node, so no mount can leak. When the last process of a node ends, however it
// ends, the kernel removes the mounts (decision 3).
//
// # A private network namespace
//
// LXC's monitor also runs in its own network namespace, so that no user of the host can take the
// name of its abstract socket. Orrery creates the links (network/ends/veth.go) with their inner
// ends in that namespace, from where LXC moves them into the node. The only program of LXC that is
// ever run is lxc-start: commands enter a node by the pidfd of its init (package host/enter,
// decision 56).
package rootfs
