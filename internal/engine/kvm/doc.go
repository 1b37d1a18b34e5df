// Package kvm makes nodes as virtual machines with QEMU. It uses KVM where the host's processor
// supports it, and software emulation elsewhere.
//
// A machine's root is the overlay that a container of the same node would have. It is mounted in a
// mount namespace of its own. Virtiofsd, which has only the node's range of user ids, shares it
// with the guest. Nothing is converted, and everything that package nodedir does to stopped nodes
// works for machines.
//
// # Types and files
//
// The engine (kvm.go) creates, starts, changes, stops and destroys machines, and sweeps up what
// killed runs left. Separate types do the rest:
//
//   - nodedir.Nodes: everything about nodes that do not run
//   - programs (programs.go): which QEMU and virtiofsd this host has, and what they can do
//   - guests (guests.go, kicks.go): commands in guests, by the agent or by SSH (logins.go)
//   - views (view.go): the root, the console (serial.go) and the screen (screen.go) of a running machine
//   - freezer (freeze.go): freezing and thawing machines
//   - states (memory.go, renew.go): saved memory, and a takeover by another QEMU (handover.go, taps.go, headers.go)
//
// A machine (process.go, monitor.go) is one node as QEMU runs it. A launch (launch.go) starts its
// programs. It opens what QEMU receives (passedfiles.go), shares the root (share.go, stack.go) or opens
// a foreign disk (imported.go), and lends devices (devices.go). While the machine runs, a
// replugging (plug.go) changes its disks, a rewiring (rewire.go) its interfaces, and a remounting
// (remount.go, submounts.go, opened.go) its volumes.
//
// # Boot
//
// The kernel is a layer of its own, just above the base (spec.KernelLayer).
// [image.Cache.FillKernel] unpacks the distribution's kernel for virtual machines in a scratch
// container. It adds kmod and mount where the base lacks them. It runs no package script and does
// not change dpkg's database: var/lib/dpkg/status.d and the layer's record list what was unpacked.
// Role layers do not stand on it (decision 27).
//
// Package image/kernel makes two files from it, once, and stores them beside the layer's tree. The
// first is vmlinux, which QEMU can start by the PVH protocol, or the packaged kernel if QEMU
// cannot. The second is initramfs-DIGEST, named by the digest of orrery-guest. It holds that
// program, the drivers and file systems listed in image/kernel/survey.go that the kernel has as
// modules, and their dependencies.
//
// Start mounts the overlay, starts virtiofsd on it, and starts QEMU with kernel and initramfs, and
// a boot.Config on the kernel's command line. In the guest, package guest/boot takes these steps:
//
//   - It loads the drivers of the devices that exist (by their modalias, as udev does).
//   - It mounts the root.
//   - It finds each interface by its MAC and sets its name, MTU, address and gateway.
//   - It moves to the new root, starts the agent, and executes /sbin/init.
//
// If a step fails, it prints one line ("orrery-guest: …") on the console and powers the machine
// off. Start reports that line. The agent answers before systemd does. A request to power off that
// arrives earlier waits until systemd handles the signal, because a signal that process 1 does not
// handle is lost.
//
// # A running machine
//
// The control group orrery/SITE/ID shows whether a machine runs. From their first moment, QEMU,
// virtiofsd and the console recorder are in it, and nothing else is. There is no pid file, so the
// next run finds a machine whatever killed the last one. If QEMU is missing, the node counts as
// stopped, and the next start removes the rest. If virtiofsd is missing, the node counts as running
// without a root, and the next start ends the machine first.
//
// QEMU receives everything that it shares with the host as open descriptors (passedfiles.go). These are
// the listening sockets of the monitor, the console and the agent's eight ports, the connection to
// virtiofsd, and taps. The sockets are in RUN/vm/SITE/ID, which only root can enter. The only paths
// that QEMU opens are its firmware, the kernel and the initramfs.
//
//   - Console: a process of orrery-guest, confined as QEMU is, writes two files in RUN/vm/SITE/ID in turn.
//     So the last 512 KiB to 1 MiB are available (recorder.go, decision 83). They are saved as
//     console.log when the machine stops. The root shell on the console is a unit that orrery-guest writes
//     to the guest's /run (decision 30). The file console.lock names its user (serial.go).
//   - Screen: a machine that boots a foreign disk image has QEMU's VNC server, which listens nowhere (-vnc
//     none). Each viewer gets one end of a socket pair, and QEMU the other (add_client). Pictures are written
//     to a file in memory (display.go).
//   - The host's view: the host reads the guest's root through virtiofsd's inner process (view.go), for
//     example to find drift. The guest's own mounts are not visible.
//   - Memory and processors are fixed at start. The plan restarts a machine to change them.
//   - PCI functions: /run/orrery/pci/ADDRESS records the former driver before the kernel is asked to rebind.
//     The cleanup of a machine returns the functions by that record (package host/pci). QEMU sees
//     /dev/vfio/GROUP and the functions' directories in /sys. It may lock as much memory as its guest has,
//     and some more for the functions.
//   - Disks (vm.disk, vm.disks): package engine/disk makes and inspects them, argv/drives.go describes them
//     to QEMU, and plug.go changes them while the machine runs. Disk files are in the private layer, in
//     .orrery-disks, and so are copied, moved and removed with it. With a disk as root, orrery-guest mounts
//     an overlay of the shared root and an ext4 on that disk before systemd starts (guest/boot/stack.go,
//     decision 31).
//   - Kernel threads of a machine (one for KVM, one for each vhost queue) are in its control group, so that
//     its limits apply to them. The freezer of cgroup v2 would wait for them for ever, so they are in the
//     root group while the machine is frozen (host/cgroup/threads.go).
//
// # Volumes
//
// Volumes are mounted and unmounted in virtiofsd's mount namespace (remount.go), and the guest
// mounts what appears there. Before the host unmounts a volume, the agent unmounts it in the
// namespaces of init and of all services, and reports which process still uses it (forget). After
// the host has mounted a volume, the agent makes the guest look (find). The agent's answer is not
// trusted: virtiofsd keeps open what a guest still uses, and then the host cannot unmount it. The
// node's record lists a volume from before the change until after it. So the next run can complete
// a killed change at any point (TestKilledRemount).
//
// # Network interfaces
//
// Interfaces are plugged and unplugged while the machine runs (rewire.go). To plug one, QEMU
// receives the new tap (getfd), then netdev_add and device_add for a free slot. The agent then does
// what orrery-guest does at boot (boot.Join). Unplugging is device_del, which waits for the guest,
// then netdev_del, then the removal of the link and its guard.
//
// QEMU keeps the command line of its start, so it cannot tell a guest that reboots what was plugged
// later. The guest therefore reads its interfaces from /etc/orrery/.nics.json. The host writes that
// file after plugging and before unplugging. So the file never names an interface that the machine
// lacks, without which the guest would not boot.
//
// Before any of this, the node's record lists every link that may exist and which networks are in
// doubt. The next up unplugs what is in doubt and plugs it again if it is declared. Plugging and
// unplugging are separate steps, because a network can take the name of another only after that one
// is removed.
//
// # Freezing
//
// The guests of all nodes involved first flush their data (engine.Flusher). Then Freeze stops the
// processors with QEMU's stop command, which stops the guest's clock, and freezes the control
// group. The file halted records the first step, and the file freezing the second. A later process
// undoes both, and List reads the files without asking QEMU. A QEMU that does not answer is frozen
// all the same.
//
// Up to version 1.13, virtiofsd may miss a request that arrives while it begins to serve a machine
// that resumes. So the guest announces each request (event_idx=off), and the agent requests a file
// after the machine has resumed (kicks.go).
//
// # Another QEMU, saved memory
//
// A machine can continue in another QEMU (renew.go). A second QEMU and virtiofsd, in the same
// control group, take over its state and then its sockets. The file moving names the processes of
// the first (handover.go). After a kill, the next process asks QEMU which of the two has the state
// (decision 33).
//
// A machine's memory can be saved (memory.go). QEMU sends its state into a pipe while the
// processors are stopped, and another QEMU loads it instead of booting. The file memory is the
// state that the next start loads.
//
// # Foreign disk images
//
// Before any other program opens a disk image, package image/foreign reads its header and rejects
// an image that refers to another file. The store keeps the image as a layer of one file
// (image/disks.go), and nothing is built on it. The node's private layer then holds no root files.
// It holds disk.qcow2, an overlay that is empty at first, and UEFI's variables
// (engine/nodedir/disk.go). Copying, saving and removing private layers works as for all nodes.
// QEMU receives both files open, and the name of the backing file on its command line (imported.go,
// argv/imported.go).
//
// A seed ([foreign.Seed]) identifies the node to a guest with cloud-init. The host enters QEMU's
// network namespace and connects to a port there. QEMU forwards the port to the guest's SSH server,
// through a card that is on no network of the site. So twins and releases in quarantine are reached
// like all others. Package host/login is the host.Runner on top. Roles have no layers on such a
// node: role.Job does in the running node what role.Build does in a scratch container.
package kvm
