// Package ferry transfers backups between the hosts of a site and the machine with the vault.
//
// For a backup, SendBackup reads what a host has, in step with all others, and a BackupReceiver stores
// it in the vault. For a restore, SendRestore reads a part of a backup from a vault, and the host stages it.
// Neither end trusts the other: decision 47 explains why.
//
// # A backup
//
// The vault is on the machine where the command runs. This machine first sends each host the lists
// that the host sent for the last backup. The host does not read files that have not changed, and
// does not send the pieces in those lists. A host cannot name a piece that it has not sent itself,
// in this backup or the last one: the vault stores a list only if all its pieces are such.
// Otherwise a host that knows a digest could obtain the content by a restore. So two hosts send the
// same content twice, and the vault stores it once.
//
// Names, records and paths are checked like those of a backup from an unknown author, and the
// directory of a volume must be the one in the site file. The site directory is read where the
// command runs, and releases are read from a host whose copy all others have. All hosts read while
// nodes run. Then the site is locked, the nodes of all hosts are frozen at one moment, and what has
// changed is read. The manifest names each host's part and the hosts that were left out
// (--without). Its format is 2, so that an older program does not restore it as a backup of one
// host.
//
// # A restore
//
// Each host receives the trees of the nodes that will be there, and the secrets that these need,
// and stages them. When all hosts have staged their parts, each records that it continues. One such
// record tells the next run that all parts are there, and that run completes them on all hosts.
// Without a record, nothing was changed. The former nodes are taken down on all hosts before
// anything is moved into place on one. Each node is created by its host as usual. A node whose data
// is staged on a host is placed there. A part has everything that this needs, including copies of
// releases, so the rest is an up from any machine, without the backup. A site on one host is
// restored in the same way, as a fleet of one. An existing site directory is used as it is: after a
// loss, it says which hosts there are now.
//
// If hosts are left out (--without), only nodes that are now on the others are restored. Each part
// records which hosts were left out, so that up may create its nodes while exactly these hosts are
// unknown. Releases stay as they are and must be those of the backup.
//
// A twin is restored like any part. Each host gets the record of the twin before anything else of
// it, and removes the record if not all hosts can stage their parts. The paths of volumes are
// removed, so that no host writes where the original's data is.
//
// # Layers, snapshots, repairs
//
// Hosts report their layers before they read, and again under the lock. One host with the trusted
// content sends a layer, and the layer is refused from all others (decision 42). A restore offers
// each host the layers of its nodes, and tells the host whether the user trusts them (decision 22).
// The host compares their content with its records and requests only those that it lacks.
//
// A backup has a part of each host for each snapshot. By the time of a restore, nodes may be on
// other hosts, so each host receives one part, with the directories of its nodes from all parts.
// For a node, only the part of the host that has the node in the same backup is trusted. Otherwise
// a host could claim to have stored another host's node, and choose what a later restore of the
// snapshot restores there. The part stays staged until the nodes are created.
//
// A repair asks each host for what the vault has lost of that host's data: it sends the digests of
// the pieces and the trees that contain them. The vault accepts only what it requested, and only
// once. Hosts that do not answer are named and do not end the repair.
package ferry
