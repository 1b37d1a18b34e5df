package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// asMember is what packaging/orrery-member says before the arguments of whoever calls it by sudo.
const asMember = "as-member"

// enter makes this call one of somebody who is not root: what is configured in a file says who that may be, and from here on nothing that the caller
// has set counts, but the arguments.
func (a *app) enter(ctx context.Context, file string) error {
	in, err := member.Configured(file)
	if err != nil {
		return err
	}
	from, err := os.Getwd()
	if err != nil {
		from = "/" // it may be gone
	}
	if err := host.OwnSurroundings(); err != nil {
		return problem.New(problem.Unable, "the surroundings of the caller cannot be left").Because(err)
	}
	p, err := member.Caller(ctx, in)
	if err != nil {
		return err
	}
	a.member, a.from, a.dirs = p, from, in.Dirs()
	return os.Setenv("SUDO_USER", p.Name) // whom the journal, locks and what runs later name
}

// mayCall refuses a member what is not for members, and settles which site directory is meant: one that root has brought up. It is run before every verb.
func (a *app) mayCall(c *cobra.Command, args []string) error {
	if a.member == nil {
		return nil
	}
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	call := member.Call{Verb: verb}
	c.Flags().Visit(func(f *pflag.Flag) { call.Flags = append(call.Flags, f.Name) })
	on, known := member.Works(verb)
	if !known || on == member.Nothing || on == member.Inner || on == member.Host {
		return a.member.May(call)
	}
	said := a.siteDir
	switch {
	case on == member.NewTwin && len(args) > 0:
		said = args[0]
	case on == member.OldTwin && len(args) > 0:
		a.twin = args[0]
	}
	m, owner, err := a.recorded(said)
	if err != nil {
		return err
	}
	if err := member.RootsAlone(c.Context(), m.Dir); err != nil {
		return err
	}
	s, err := sitefile.Load(m.Dir)
	if err != nil {
		return err
	}
	if s.Name != m.Site {
		return problem.New(problem.Refused, "site %s is now called %s; nothing was done", m.Site, s.Name).At(m.Dir).Try("have root bring it up")
	}
	a.siteDir = m.Dir
	call.Site, call.Twin, call.Owner = s, a.twin, owner
	return a.member.May(call)
}

// recorded gives the site or twin that a member means, as root has put it on record, and whose the twin is. What is said is the name of a site or its directory.
func (a *app) recorded(said string) (m marker, owner string, err error) {
	meant := func(name, dir string) bool {
		return said == "" || said == name || a.pathOf(said) == dir
	}
	if a.twin != "" {
		found := slices.DeleteFunc(a.twins(), func(r twinRecord) bool { return r.Options.Name != a.twin || !meant(r.Site, r.Dir) })
		switch len(found) {
		case 0:
			return m, "", a.noTwin("", a.twin)
		case 1:
			return marker{Site: found[0].Site, Twin: a.twin, Dir: found[0].Dir}, found[0].Options.Owner, nil
		}
		return m, "", problem.New(problem.Usage, "twins of %s are called %s", count(len(found), "site"), a.twin).Try("say -C %s, for instance", found[0].Site)
	}
	up := slices.DeleteFunc(a.sitesUp(), func(m marker) bool { return m.Twin != "" })
	here := slices.DeleteFunc(slices.Clone(up), func(m marker) bool { return m.Dir != a.from })
	found := slices.DeleteFunc(up, func(m marker) bool { return !meant(m.Site, m.Dir) })
	switch {
	case said == "" && len(here) == 1:
		return here[0], "", nil
	case len(found) == 1:
		return found[0], "", nil
	case len(found) == 0 && said == "":
		return m, "", problem.New(problem.Usage, "no site is up on this host").Try("ask whoever administers it")
	case len(found) == 0:
		return m, "", problem.New(problem.Refused, "%s is no site that root has brought up on this host; nothing was done", said).
			Try("ask whoever administers it: what is in a site directory runs as root")
	}
	return m, "", problem.New(problem.Usage, "which site? %d are up on this host", len(found)).Try("say -C %s, for instance", found[0].Site)
}

// pathOf gives the path that a caller means, by its letters only: it is compared, and never followed.
func (a *app) pathOf(said string) string {
	if filepath.IsAbs(said) {
		return filepath.Clean(said)
	}
	return filepath.Join(a.from, said)
}

// grant settles what a twin of a member may be.
func (a *app) grant(original *site.Site, r *twinRecord) error {
	if a.member == nil {
		return nil
	}
	w := member.Wish{NAT: r.Options.NAT, Volumes: r.Volumes, Scale: max(r.Options.Cpus, r.Options.Memory)}
	for _, other := range a.twins() {
		if other.Site == r.Site && other.Options.Owner == a.member.Name {
			w.Has++
		}
	}
	if !r.Expires.IsZero() {
		w.Expires = r.Expires.Sub(r.Created)
	}
	granted, err := member.MayHave(original.Twins, w)
	r.Expires = r.Created.Add(granted)
	return err
}

// noted keeps in the journal what a member does in nodes.
func (a *app) noted(s *site.Site, do func() error) error {
	if a.member == nil {
		return do()
	}
	record, err := a.begin(s, a.command)
	if err != nil {
		return err
	}
	err = do()
	result := "done"
	if status := problem.Exit(err); status != 0 {
		result = fmt.Sprintf("exit status %d", status)
	}
	if ended := record.end(result); err == nil {
		err = ended
	}
	return err
}

// barred is the way into a node that is not for members.
type barred struct {
	host.Runner
	name string
}

func (b barred) Run(context.Context, host.Command) error {
	return problem.New(problem.Refused, "node %s is privileged, so whoever runs programs in it is root on this host; nothing was done", b.name).
		Try("ask whoever administers this host")
}
