// Package xen makes nodes as guests of Xen on a Dom0, with Xen's own toolstack (package host/xl).
//
// A guest's root is the overlay that a container of the same node would have. It is mounted in a
// mount namespace of its own and shared with the guest by 9p. Everything that package nodedir does
// to stopped nodes works for guests. Decision 35 explains the reasons and what does not isolate a
// guest.
//
// # Start
//
// Start writes the domain's configuration (config.go, pure) and a few scripts to RUN/vm/SITE/ID
// (environment.go). It mounts the overlay and runs "xl create" in that mount namespace and in the
// node's control group. The toolstack starts this program twice (cmd/orrery, package control/here):
//
//   - as the domain's device model. [confine.Backend.Become] makes a confined environment and becomes QEMU in
//     it, as root of the node's user ids. It serves the root and other directories by 9p, and the agent's
//     ports as six channels at sockets;
//   - for each network card. [ends.Claim] names the link and attaches it to the network in the node's record.
//
// QEMU in the control group shows that the node runs, because a guest is useless without the root
// that QEMU serves. So List starts no process. A reboot makes a new domain: the xl process that
// watches the first one makes it from the same files. The guest's root is boot.NinePXen, and it
// mounts the other directories that it is offered (boot.Config.Mounts).
//
// # Disks
//
// A node's disks (drives.go) begin with xvde. An HVM guest also has an emulated copy of each of the
// first four, which QEMU would open by name. The host's kernel opens devices. QEMU receives files
// open, each in a set (confine.FDSetFile) whose name replaces the path. An empty file of that name
// exists in its confined root, because newer versions of QEMU look for one.
//
// Disk files are in the private layer, in .orrery-disks, and an empty directory of the overlay is
// mounted over them. It must be the overlay's own directory, because 9p passes inode numbers
// unchanged. Xen's disks have no serial number, so /etc/orrery/.drives.json lists the names, and
// orrery-guest turns them into udev rules in /run. A disk as root is not supported: the overlay
// that orrery-guest would mount above 9p, and everything mounted beside it, would have to change
// places.
//
// A node that boots a foreign disk image has neither 9p nor agent (imported.go). Its private layer,
// with disk.qcow2, is mounted in the place of the root, with the node's user ids. Xen's QEMU trusts
// the header of an image. So the overlay's header names its backing file as a set of open files
// (foreign.CreateOverlay), and QEMU finds the image in the store and nothing else. Each start verifies that
// name and format (foreign.InspectOverlay). A boot loader in the guest reads the kernel from its disk,
// and no program of the host does.
//
// # Saved memory
//
// The memory of a node that boots a foreign image can be saved (memory.go). "xl save -p" suspends
// the guest, writes its state, and resumes it paused. It runs in the node's control group, with a
// limit on what it writes. It survives the death of Orrery, because a guest that is suspended and
// not resumed is lost, and Sweep waits for it. QEMU is then stopped and resumed by its monitor, so
// that it writes all cached disk data that the guest believes written. "xl restore" uses Orrery's
// own configuration and not the one in the state. Before that, xl.ParseSaved checks whose state it
// is.
//
// # Tests
//
// TestEngine needs no Dom0. Its own program plays xl, a domain's QEMU and a guest's first process,
// depending on the name under which it runs (play_test.go). Processes, control groups, namespaces,
// links, sockets, the overlay, QEMU's confinement and the agent are real. A process in namespaces
// stands for a domain, and terminals stand for Xen's rings. The suite of package enginetest runs on
// it, as do failures of domains and xl: a failure half way, a hang, a death.
package xen
