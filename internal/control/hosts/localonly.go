package hosts

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
	"orrery/internal/treesync/sitearchive"
)

// localOnly is the scope of a site whose only host is this machine. It contacts no other machine. It
// trusts the releases stored on this machine, because only root could have written them.
type localOnly struct{ *Connector }

func (l localOnly) reach(context.Context) (f *apply.Fleet, silent, err error) {
	if len(l.Without) > 0 {
		return nil, nil, problem.New(problem.Usage, "this machine is the only host and cannot be left out").
			Try("omit --without")
	}
	if len(l.Site.Hosts) > 1 {
		return nil, nil, problem.New(problem.Mistake, "hosts %s and %s are both this machine", l.Site.Hosts[0].Name,
			l.Site.Hosts[1].Name).
			At("site.toml").Try("keep one of them")
	}
	f, host := &apply.Fleet{}, site.Host{Name: "local"}
	if len(l.Site.Hosts) == 1 {
		host = l.Site.Hosts[0]
	}
	l.add(f, host, nil)
	f.SecretKeeper().UseHosts()
	return f, nil, nil
}

func (localOnly) imageFiles(context.Context) (map[string]string, error) { return nil, nil }

func (l localOnly) register() register.Register {
	return register.Register{Dirs: l.Dirs, Known: l.Known}
}

func (l localOnly) storeStaged(_ context.Context, _ *apply.Fleet, staged *site.Site, number int, who string) error {
	return l.register().StoreRelease(l.Site, staged, number, l.Dir, who)
}

func (l localOnly) edition(_ context.Context, _ *apply.Fleet, number int, _ string) (string, error) {
	return l.Dirs.Release(l.Site.Key(), number), nil
}

func (l localOnly) load(_ context.Context, _ *apply.Fleet, number int) (*site.Site, error) {
	return l.register().LoadRelease(l.Site, number)
}

func (l localOnly) lock(*apply.Fleet) (*sitefile.Lock, error) {
	return nil, problem.New(problem.Usage, "site %s is on this machine alone, which trusts its own copies", l.Site.Key())
}

func (l localOnly) vouch(ctx context.Context) error {
	f, _, err := l.reach(ctx)
	if err != nil {
		return err
	}
	r, err := f.Records().Read(ctx)
	if err != nil {
		return err
	}
	for _, number := range r.Staged {
		digest, err := sitearchive.Digest(l.Dirs.Release(l.Site.Key(), number))
		if err != nil { // with the files of its images, the edition may be too large for other hosts
			l.Notice("this machine's copy of release %d cannot be used by other hosts: %v", number, err)
			continue
		}
		if _, err := l.Lock().Vouch(number, digest); err != nil {
			return err
		}
	}
	return nil
}

func (localOnly) admit(bool, func() (map[int]string, error)) error { return nil }

func (localOnly) checkProgram(*twin.Record) error { return nil }

func (localOnly) decidesTrials() bool { return true }

func (localOnly) bootsWholeSite() bool { return true }
