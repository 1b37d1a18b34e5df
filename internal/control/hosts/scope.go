package hosts

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
)

// A scope has the operations that differ between a site on this machine alone (own) and one with
// other machines (joint).
type scope interface {
	// reach connects to the hosts and returns those that answer. Silent is the error of the others.
	reach(ctx context.Context) (f *apply.Fleet, silent, err error)
	// stamp sets the digests of imported images, if hosts must identify images by content, and
	// returns the files by digest.
	stamp(ctx context.Context) (files map[string]string, err error)

	// keep makes the hosts store the edition of a release that is staged from the site directory.
	keep(ctx context.Context, f *apply.Fleet, staged *site.Site, number int, who string) error
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
	// program returns an error if only the hosts' records name the program that fills the volumes
	// of a twin.
	program(r *twin.Record) error

	// judges reports whether this machine alone decides how a trial ends, because it sees all
	// nodes.
	judges() bool
	// boots reports whether this machine brings up the whole site after a reboot, from the site
	// directory.
	boots() bool
}

// scope returns the scope of the site. It is the only place that distinguishes sites by their
// number of machines.
func (c *Call) scope() scope {
	if len(Elsewhere(c.Site)) == 0 {
		return own{c}
	}
	return joint{c}
}

// Judges reports whether this machine alone decides how a trial of the site ends. If not, each host
// ends the trial on its own unless a user confirms the release, because no host sees all nodes.
func (c *Call) Judges() bool { return c.scope().judges() }

// Boots reports whether this machine brings up the whole site after a reboot, from the site
// directory. If not, each host starts the nodes that it had.
func (c *Call) Boots() bool { return c.scope().boots() }

// Stamp sets the digests of the imported images of a site with other hosts, so that images are
// identified by content wherever the files are (decision 52). It returns these files by digest.
// Images of a site on this machine alone are identified by path and time, so that they need not be
// read.
func Stamp(ctx context.Context, s *site.Site) (files map[string]string, err error) {
	return (&Call{Site: s}).scope().stamp(ctx)
}
