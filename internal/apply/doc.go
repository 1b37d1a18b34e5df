// Package apply carries out a plan in parallel, and records every step. It keeps what is needed to
// undo the steps if one fails.
//
// Run carries out a plan on the hosts of a Fleet. It starts each step as soon as the steps that it needs are
// done. If a step fails, Run skips those that need it and does the rest. The Result lists what was done, what
// failed and what was skipped; from it the caller can plan how to undo the run. Run does only what the plan
// lists. It knows the order, and a Host knows how a step is done.
//
// # Steps are whole
//
// A step is complete in itself. Just before it is done, a pack.Packer adds what it needs of the
// site: spec.RoleActions (rendered files, steps, the environment, health checks) and
// inventory.PeerInfo (the data about their peers that nodes get). plan.Encode and plan.Decode carry it,
// strictly, with a payload for each kind. A step contains no secret, only the place of one: the
// host requests the value (Secrets).
//
// # Hosts
//
// So a host has two halves. Host does the steps and knows only the site's key; HostClient has the site beside
// it and packs. Fleet is all hosts of a site. Host is a structure of interfaces, one for each subject (Runs,
// State, Nodes, Releases, Layers, Volumes, Snapshots, Backups, Twins, Secrets, Transfers), each of at most a
// dozen methods. Code that needs one subject takes that interface, and a test replaces one.
//
// Package local is the host that is this machine, and package remote another one. This machine alone is a
// fleet of one, made without a login, a lock file or copies of releases; control/hosts decides that in one
// place (its scope). What only this machine has, such as the engines in this process, is a
// NearHost. A host that is left out or does not answer is observed as unknown: plan.Up then changes only
// nodes that exist on the others (plan/planinput.go).
//
// # Why the next run converges after SIGKILL
//
//   - Nodes, layers, volumes, records and files are made under a temporary name and renamed when
//     complete. The next holder of the lock removes names with a dot. The kernel releases locks.
//   - node.json says configured: false from before the first file is written until the last service has
//     started; proven works likewise.
//   - A layer in the staging directory without a live lock does not count.
//   - A bridge is recognised by its hardware address. Rules are replaced in one transaction. Kernel
//     settings are recorded before they are changed.
//   - A switch is planned from the current state, and its target recorded before it begins. All links
//     move in one system call. A volume is recorded with every node that may hold it.
package apply
