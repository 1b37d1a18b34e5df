package twins

import (
	"context"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/fill"
	"orrery/internal/control/hosts"
	"orrery/internal/control/sites"
	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
)

// Create creates a twin, fills its volumes and brings it up. It writes the record first, so that a
// killed run leaves a twin that can be brought up or destroyed.
func Create(ctx context.Context, c *control.Session, of twin.Record) (*site.Site, *apply.Result, error) {
	if err := fill.Validate(of.Volumes); err != nil {
		return nil, nil, err
	}
	b := *c
	// the creator brings it up, even if it belongs to another user
	b.Twin, b.SiteDir, b.Force = of.Options.Name, of.Dir, true
	original, _, err := LoadOriginal(c, of.Dir)
	if err != nil {
		return nil, nil, err
	}
	s, err := twin.New(original, of.Options) // report errors before anything is written
	if err != nil {
		return nil, nil, err
	}
	if err := b.CheckAllowedOn(s); err != nil {
		return nil, nil, err
	}
	of.Hosts = hosts.Names(s)
	b.Known.Add(of)
	if err := b.Connector(original).Twins().Create(ctx, s, of); err != nil {
		return nil, nil, err
	}
	if err := c.Note(original, c.Command, "twin "+of.Options.Name); err != nil {
		return nil, nil, err
	}
	if err := fill.Once(ctx, &b, s, true); err != nil {
		return nil, nil, err
	}
	r, _, err := sites.Up(ctx, &b, s, nil, sites.UpOptions{})
	return s, r, err
}

// LimitForMember limits the twin of a member to what members are allowed.
func LimitForMember(c *control.Session, original *site.Site, r *twin.Record) error {
	if c.Member == nil {
		return nil
	}
	w := member.TwinRequest{NAT: r.Options.NAT, Volumes: r.Volumes, Scale: max(r.Options.Cpus, r.Options.Memory)}
	for _, other := range c.Register().Twins() {
		if other.Site == r.Site && other.Options.Owner == c.Member.Name {
			w.Has++
		}
	}
	if !r.Expires.IsZero() {
		w.Expires = r.Expires.Sub(r.Created)
	}
	granted, err := member.CheckTwin(original.Twins, w)
	r.Expires = r.Created.Add(granted)
	return err
}

// LoadOriginal loads the site to make a twin of. Text is its directory, or the name of a site that is
// up on this machine.
func LoadOriginal(c *control.Session, text string) (*site.Site, string, error) {
	dir := text
	if c.Member != nil {
		dir = c.SiteDir // already decided
	} else if _, err := os.Stat(filepath.Join(text, sitefile.Name)); err != nil {
		for _, m := range c.Register().SitesUp() {
			if m.Site == text && m.Twin == "" {
				dir = m.Dir
			}
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, "", err
	}
	if _, err := os.Stat(filepath.Join(abs, sitefile.Name)); err != nil {
		return nil, "", problem.New(problem.Usage, "%s is neither a site directory nor a site that is up on this host", text).
			Try("name the directory of its site.toml")
	}
	s, err := sitefile.Load(abs)
	return s, abs, err
}
