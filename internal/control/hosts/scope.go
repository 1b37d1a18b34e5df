package hosts

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
)

// A scope is what it makes of a site that this machine alone has it (own), or that other machines
// have it, too (joint). All else is the same for both.
type scope interface {
	// reach returns the hosts that answer, as far as they may be asked at all. Silent tells why others do not.
	reach(ctx context.Context) (f *apply.Fleet, silent, err error)
	// stamp lets the imported images of the site be known by their content, if hosts have to know them
	// by that, and returns the files by their digests.
	stamp(ctx context.Context) (files map[string]string, err error)

	// keep lets hosts keep the edition of a release that is staged from the site directory.
	keep(ctx context.Context, f *apply.Fleet, staged *site.Site, number int, who string) error
	// edition returns a directory with the edition of a release that hosts keep: their own, or a copy
	// below another directory.
	edition(ctx context.Context, f *apply.Fleet, number int, below string) (dir string, err error)
	// load returns the site as a release makes it that hosts keep.
	load(ctx context.Context, f *apply.Fleet, number int) (*site.Site, error)

	// lock returns releases.lock, which has to name an edition before it is used.
	lock(f *apply.Fleet) (*sitefile.Lock, error)
	// vouch writes what hosts keep to releases.lock, if there is no doubt of it.
	vouch(ctx context.Context) error
	// admit refuses editions from a backup that are not the ones in releases.lock, and adds those to
	// it of a site directory that is fresh.
	admit(fresh bool, digests func() (map[int]string, error)) error
	// program refuses to run the program that hosts have on record for the volumes of a twin, if that
	// is only their word.
	program(r *twin.Record) error

	// judges reports whether this machine alone decides how a trial ends: it sees all nodes.
	judges() bool
	// boots reports whether this machine brings up the whole site after a reboot, as its directory says.
	boots() bool
}

// scope returns that of the site. Nothing else asks how many machines it is on.
func (c *Call) scope() scope {
	if len(Elsewhere(c.Site)) == 0 {
		return own{c}
	}
	return joint{c}
}

// Judges reports whether this machine alone decides how a trial of the site ends. If not, each host
// ends it by itself unless a user confirms it, because none sees all nodes.
func (c *Call) Judges() bool { return c.scope().judges() }

// Boots reports whether this machine brings up the whole site after a reboot, as its directory
// says. If not, each host brings up what it had of it.
func (c *Call) Boots() bool { return c.scope().boots() }

// Stamp lets the imported images of a site with other hosts be known by their content, wherever the
// files are (decision 52), and returns these files by their digests. Those of a site that is on
// this machine alone are known by path and time, so that it need not read them.
func Stamp(ctx context.Context, s *site.Site) (files map[string]string, err error) {
	return (&Call{Site: s}).scope().stamp(ctx)
}
