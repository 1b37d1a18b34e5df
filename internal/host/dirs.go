package host

import (
	"os"
	"path/filepath"
	"strconv"
)

// Dirs are where a host keeps what Orrery has made there.
type Dirs struct {
	State string // survives a reboot: /var/lib/orrery
	Run   string // does not: /run/orrery, a tmpfs
}

// Where they are unless something else is said.
const (
	StateDir = "/var/lib/orrery"
	RunDir   = "/run/orrery"
)

// DefaultDirs returns the directories of this host; ORRERY_STATE and ORRERY_RUN in the environment name others.
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

// Site is the state of one site.
func (d Dirs) Site(site string) string { return filepath.Join(d.State, "sites", site) }

// Nodes holds a directory for each node of a site, which package nodedir knows.
func (d Dirs) Nodes(site string) string { return filepath.Join(d.Site(site), "nodes") }

// Keys holds the SSH host keys of a site's nodes, which outlive the nodes.
func (d Dirs) Keys(site string) string { return filepath.Join(d.Site(site), "keys") }

// Secrets holds the secrets that were generated for a site.
func (d Dirs) Secrets(site string) string { return filepath.Join(d.Site(site), "secrets") }

// Volumes holds the persistent data of a site's nodes.
func (d Dirs) Volumes(site string) string { return filepath.Join(d.Site(site), "volumes") }

// Releases holds a directory for each release of a site that was staged on this host.
func (d Dirs) Releases(site string) string { return filepath.Join(d.Site(site), "releases") }

// Release is the state of one release: the site directory as it was when the release was staged,
// and copies of volumes.
func (d Dirs) Release(site string, number int) string {
	return filepath.Join(d.Releases(site), strconv.Itoa(number))
}

// Copies holds the copies of volumes that the nodes of a release use in quarantine.
func (d Dirs) Copies(site string, release int) string {
	return filepath.Join(d.Release(site, release), "volumes")
}

// Snapshots holds a directory for each snapshot of a site.
func (d Dirs) Snapshots(site string) string { return filepath.Join(d.Site(site), "snapshots") }

// Arrivals holds a directory for each node that is coming from another host.
func (d Dirs) Arrivals(site string) string { return filepath.Join(d.Site(site), "arrivals") }

// Logs holds what roles printed on the nodes of a site, a file for each.
func (d Dirs) Logs(site string) string { return filepath.Join(d.Site(site), "logs") }

// Journal is the record of what was done to a site on this host.
func (d Dirs) Journal(site string) string { return filepath.Join(d.Site(site), "journal.jsonl") }

// Lock is held by whoever changes a site on this host.
func (d Dirs) Lock(site string) string { return filepath.Join(d.Site(site), "lock") }

// Etc is what a node sees as /etc/orrery: on a tmpfs, because secrets are in it.
func (d Dirs) Etc(site string, id int) string {
	return filepath.Join(d.Run, "sites", site, strconv.Itoa(id))
}

// Names holds the digest of what nodes of a site know of one another.
func (d Dirs) Names(site string) string { return filepath.Join(d.Run, "sites", site, "names") }
