package host

import (
	"os"
	"path/filepath"
	"strconv"
)

// Dirs are the directories where a host stores what Orrery has created.
type Dirs struct {
	State string // survives a reboot: /var/lib/orrery
	Run   string // lost at a reboot: /run/orrery, a tmpfs
}

// The default directories.
const (
	StateDir = "/var/lib/orrery"
	RunDir   = "/run/orrery"
)

// DefaultDirs returns the directories of this host. ORRERY_STATE and ORRERY_RUN in the environment
// override the defaults.
func DefaultDirs() Dirs {
	d := Dirs{State: StateDir, Run: RunDir}
	if dir := os.Getenv("ORRERY_STATE"); dir != "" {
		d.State = dir
	}
	if dir := os.Getenv("ORRERY_RUN"); dir != "" {
		d.Run = dir
	}
	return d
}

// Site returns the state directory of one site.
func (d Dirs) Site(site string) string { return filepath.Join(d.State, "sites", site) }

// Nodes returns the directory with a subdirectory for each node of a site (package nodedir).
func (d Dirs) Nodes(site string) string { return filepath.Join(d.Site(site), "nodes") }

// Keys returns the directory of the SSH host keys of a site's nodes. The keys outlive the nodes.
func (d Dirs) Keys(site string) string { return filepath.Join(d.Site(site), "keys") }

// Secrets returns the directory of the secrets that were generated for a site.
func (d Dirs) Secrets(site string) string { return filepath.Join(d.Site(site), "secrets") }

// Volumes returns the directory of the persistent data of a site's nodes.
func (d Dirs) Volumes(site string) string { return filepath.Join(d.Site(site), "volumes") }

// Releases returns the directory with a subdirectory for each release of a site staged on this
// host.
func (d Dirs) Releases(site string) string { return filepath.Join(d.Site(site), "releases") }

// Release returns the state directory of one release: the site directory at the time when the
// release was staged, and copies of volumes.
func (d Dirs) Release(site string, number int) string {
	return filepath.Join(d.Releases(site), strconv.Itoa(number))
}

// VolumeCopies returns the directory of the copies of volumes that the nodes of a release use in
// quarantine.
func (d Dirs) VolumeCopies(site string, release int) string {
	return filepath.Join(d.Release(site, release), "volumes")
}

// Snapshots returns the directory with a subdirectory for each snapshot of a site.
func (d Dirs) Snapshots(site string) string { return filepath.Join(d.Site(site), "snapshots") }

// Arrivals returns the directory with a subdirectory for each node that is arriving from another
// host.
func (d Dirs) Arrivals(site string) string { return filepath.Join(d.Site(site), "arrivals") }

// Logs returns the directory of the output of roles on the nodes of a site, with one file for each
// node.
func (d Dirs) Logs(site string) string { return filepath.Join(d.Site(site), "logs") }

// Journal returns the path of the record of what was done to a site on this host.
func (d Dirs) Journal(site string) string { return filepath.Join(d.Site(site), "journal.jsonl") }

// Lock returns the path of the lock that a process holds while it changes a site on this host.
func (d Dirs) Lock(site string) string { return filepath.Join(d.Site(site), "lock") }

// Etc returns the directory that a node sees as /etc/orrery. It is on a tmpfs, because it contains
// secrets.
func (d Dirs) Etc(site string, id int) string {
	return filepath.Join(d.Run, "sites", site, strconv.Itoa(id))
}

// Names returns the path of the digest of what nodes of a site know of one another.
func (d Dirs) Names(site string) string { return filepath.Join(d.Run, "sites", site, "names") }
