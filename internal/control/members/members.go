// Package members lets users other than root work with sites that root has brought up. The host's
// configuration and the site files set the limits.
//
// It is a package of its own because it is an operation, as each of the packages beside it is.
package members

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
	"orrery/internal/text/humanize"
)

// Enter makes a session that of a user who is not root. A configuration file says which users are
// allowed. From then on, nothing that the caller has set has an effect, except the arguments.
func Enter(ctx context.Context, c *control.Session, file string) error {
	in, err := member.ReadConfiguration(file)
	if err != nil {
		return err
	}
	from, err := os.Getwd()
	if err != nil {
		from = "/" // the directory may be gone
	}
	if err := host.DropInheritedState(); err != nil {
		return problem.New(problem.Unable, "the caller's environment cannot be dropped").Because(err)
	}
	p, err := member.Caller(ctx, in)
	if err != nil {
		return err
	}
	// Programs of the site file, such as those that print secrets, must not wait for input of a
	// member.
	if err := host.HideInput(); err != nil {
		return err
	}
	c.Member, c.From, c.Dirs = p, from, in.Dirs()
	return os.Setenv("SUDO_USER", p.Name) // named in the journal, in locks and by what runs later
}

// MayCall returns an error if a member may not call a verb. It also decides which site directory is
// used: one that root has brought up. It is called before every verb.
func MayCall(ctx context.Context, c *control.Session, verb string, flags, args []string) error {
	call := member.Call{Verb: verb, Flags: flags}
	on, known := member.ObjectOf(verb)
	if !known || on == member.OnNothing || on == member.OnInner || on == member.OnHost {
		return c.Member.CheckCall(call)
	}
	said := c.SiteDir
	switch {
	case on == member.OnNewTwin && len(args) > 0:
		said = args[0]
	case on == member.OnExistingTwin && len(args) > 0:
		c.Twin = args[0]
	}
	m, owner, err := recordedSite(c, said)
	if err != nil {
		return err
	}
	if err := member.CheckRootOwned(ctx, m.Dir); err != nil {
		return err
	}
	s, err := sitefile.Load(m.Dir)
	if err != nil && verb == "status" { // every member may call it, so the owners do not matter
		var unread error
		if s, unread = c.Register().LoadDeclaration(m); unread == nil {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if s.Name != m.Site {
		return problem.New(problem.Refused, "site %s is now called %s; nothing was done", m.Site, s.Name).At(m.Dir).
			Try("have root bring it up")
	}
	c.SiteDir, c.Named = m.Dir, m.Site
	call.Site, call.Twin, call.Owner = s, c.Twin, owner
	return c.Member.CheckCall(call)
}

// recordedSite returns the site or twin that a member selected, as recorded by root, and the owner of
// the twin. Said is the name of a site or its directory.
func recordedSite(c *control.Session, said string) (m register.UpRecord, owner string, err error) {
	meant := func(name, dir string) bool {
		return said == "" || said == name || absolutePath(c, said) == dir
	}
	if c.Twin != "" {
		found := slices.DeleteFunc(c.Register().Twins(), func(r twin.Record) bool {
			return r.Options.Name != c.Twin ||
				!meant(r.Site, r.Dir)
		})
		switch len(found) {
		case 0:
			return m, "", c.Register().NoTwinError("", c.Twin)
		case 1:
			return register.UpRecord{Site: found[0].Site, Twin: c.Twin, Dir: found[0].Dir}, found[0].Options.Owner, nil
		}
		return m, "", problem.New(problem.Usage, "%s have a twin called %s", humanize.Plural(len(found), "site"), c.Twin).
			Try("use -C %s, for example", found[0].Site)
	}
	up := slices.DeleteFunc(c.Register().SitesUp(), func(m register.UpRecord) bool { return m.Twin != "" })
	here := slices.DeleteFunc(slices.Clone(up), func(m register.UpRecord) bool { return m.Dir != c.From })
	found := slices.DeleteFunc(up, func(m register.UpRecord) bool { return !meant(m.Site, m.Dir) })
	switch {
	case said == "" && len(here) == 1:
		return here[0], "", nil
	case len(found) == 1:
		return found[0], "", nil
	case len(found) == 0 && said == "":
		return m, "", problem.New(problem.Usage, "no site is up on this host").Try("ask its administrator")
	case len(found) == 0:
		return m, "", problem.New(problem.Refused,
			"%s is not a site that root has brought up on this host; nothing was done", said).
			Try("ask its administrator: the contents of a site directory run as root")
	}
	return m, "", problem.New(problem.Usage, "no site selected: %d are up on this host", len(found)).
		Try("use -C %s, for example", found[0].Site)
}

// absolutePath returns the path that a caller gave, without looking at the file system. The path is only
// compared, and never followed.
func absolutePath(c *control.Session, said string) string {
	if filepath.IsAbs(said) {
		return filepath.Clean(said)
	}
	return filepath.Join(c.From, said)
}
