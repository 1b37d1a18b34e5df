package hosts

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
)

// A scope has the operations that differ between a site on this machine alone (localOnly) and one with
// other machines (multiHost).
type scope interface {
	// reach connects to the hosts and returns those that answer. Silent is the error of the others.
	reach(ctx context.Context) (f *apply.Fleet, silent, err error)
	// imageFiles sets the digests of imported images, if hosts must identify images by content, and
	// returns the files by digest.
	imageFiles(ctx context.Context) (files map[string]string, err error)

	// storeStaged makes the hosts store the edition of a release that is staged from the site directory.
	storeStaged(ctx context.Context, f *apply.Fleet, staged *site.Site, number int, who string) error
	// edition returns a directory with the stored edition of a release: this machine's own, or a
	// copy in the directory below.
	edition(ctx context.Context, f *apply.Fleet, number int, below string) (dir string, err error)
	// load returns the site as defined by a stored release.
	load(ctx context.Context, f *apply.Fleet, number int) (*site.Site, error)

	// lock returns releases.lock, which must list an edition before it is used.
	lock(f *apply.Fleet) (*sitefile.Lock, error)
	// vouch adds the stored editions to releases.lock, if this machine's copies are authoritative.
	vouch(ctx context.Context) error
	// admit returns an error if editions from a backup differ from those in releases.lock. It adds
	// new editions to the releases.lock of a fresh site directory.
	admit(fresh bool, digests func() (map[int]string, error)) error
	// checkProgram returns an error if only the hosts' records name the program that fills the volumes
	// of a twin.
	checkProgram(r *twin.Record) error

	// decidesTrials reports whether this machine alone decides how a trial ends, because it sees all
	// nodes.
	decidesTrials() bool
	// bootsWholeSite reports whether this machine brings up the whole site after a reboot, from the site
	// directory.
	bootsWholeSite() bool
}

// scope returns the scope of the site. It is the only place that distinguishes sites by their
// number of machines.
func (c *Connector) scope() scope {
	if len(RemoteNames(c.Site)) == 0 {
		return localOnly{c}
	}
	return multiHost{c}
}

// DecidesTrials reports whether this machine alone decides how a trial of the site ends. If not, each host
// ends the trial on its own unless a user confirms the release, because no host sees all nodes.
func (c *Connector) DecidesTrials() bool { return c.scope().decidesTrials() }

// BootsWholeSite reports whether this machine brings up the whole site after a reboot, from the site
// directory. If not, each host starts the nodes that it had.
func (c *Connector) BootsWholeSite() bool { return c.scope().bootsWholeSite() }

// HashImages sets the digests of the imported images of a site with other hosts, so that images are
// identified by content wherever the files are (decision 52). It returns these files by digest.
// Images of a site on this machine alone are identified by path and time, so that they need not be
// read.
func HashImages(ctx context.Context, s *site.Site) (files map[string]string, err error) {
	return (&Connector{Site: s}).scope().imageFiles(ctx)
}
