package hosts

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
)

// multiHost is the scope of a site with other machines. Their data is not trusted: a copy of a release
// is used only if releases.lock in the site directory has its digest.
type multiHost struct{ *Connector }

func (m multiHost) reach(ctx context.Context) (f *apply.Fleet, silent, err error) {
	if err := checkPortable(m.Site, m.Without); err != nil {
		return nil, nil, err
	}
	files, err := m.imageFiles(ctx)
	if err != nil {
		return nil, nil, err
	}
	links, silent := m.links(ctx)
	if err := m.checkDistinct(links); err != nil {
		return nil, nil, err
	}
	f = &apply.Fleet{}
	for i, h := range m.Site.Hosts {
		if slices.Contains(m.Without, h.Name) || links[i] == nil && !h.Local() {
			f.Unknown = append(f.Unknown, h.Name)
			continue
		}
		m.add(f, h, links[i])
	}
	if len(f.All) == 0 {
		if silent == nil {
			silent = problem.New(problem.Usage, "all hosts are left out").Try("leave out fewer hosts")
		}
		return nil, nil, silent
	}
	for _, h := range f.All {
		h.Label, h.Files = h.Name, files
	}
	f.Lock, f.LockErr = m.Lock().read()
	f.SecretKeeper().UseHosts()
	return f, silent, nil
}

func (m multiHost) imageFiles(ctx context.Context) (map[string]string, error) {
	return hashImages(ctx, m.Site)
}

// storeStaged makes the edition on this machine first, because its digest must be in releases.lock before
// any host has the edition.
func (m multiHost) storeStaged(ctx context.Context, f *apply.Fleet, staged *site.Site, number int, who string) error {
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the hosts have it
	here := register.Register{Dirs: host.Dirs{State: dir}, Known: m.Known}
	if err := here.StoreRelease(m.Site, staged, number, m.Dir, who); err != nil {
		return err
	}
	return m.Releases(f).Store(ctx, number, here.Dirs.Release(m.Site.Key(), number))
}

func (m multiHost) edition(ctx context.Context, f *apply.Fleet, number int, below string) (string, error) {
	at := filepath.Join(below, strconv.Itoa(number))
	if err := os.Mkdir(at, 0o700); err != nil {
		return "", err
	}
	return at, f.Editions().Fetch(ctx, number, at)
}

func (m multiHost) load(ctx context.Context, f *apply.Fleet, number int) (*site.Site, error) {
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // all of it has been read
	if err := f.Editions().Fetch(ctx, number, dir); err != nil {
		return nil, err
	}
	made, err := register.Register{Dirs: m.Dirs, Known: m.Known}.ReleaseOf(m.Site, dir, m.Dir, number)
	if err != nil {
		return nil, err
	}
	for i := range made.Images {
		made.Images[i].Remote = true
	}
	// Secrets and hooks are read, run and sent by this machine, and backups are taken by it. Only its
	// own site file may define them, not a host.
	made.Secrets, made.Hooks = m.Site.Secrets, m.Site.Hooks
	made.Backup, made.Snapshot, made.Watch = m.Site.Backup, m.Site.Snapshot, m.Site.Watch
	return made, nil
}

func (m multiHost) lock(f *apply.Fleet) (*sitefile.Lock, error) { return f.Lock, f.LockErr }

func (multiHost) vouch(context.Context) error { return nil }

// admit accepts for a restored twin also the digests of its site's releases.
func (m multiHost) admit(fresh bool, digests func() (map[int]string, error)) error {
	lock, err := m.Lock().read()
	if err != nil {
		return err
	}
	all, err := digests()
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(all)) {
		digest := all[number]
		if known := lock.Digest(m.Site.Twin, number); known != digest && lock.Digest("", number) != digest &&
			(known != "" || !fresh) {
			return problem.New(problem.Refused,
				"release %d in the backup differs from the one in releases.lock; nothing was done", number).At(lock.Path()).
				Try("restore with --dir into a directory that does not exist yet; or, if you trust the backup, write its digest into that file: %d = %q",
					number, digest)
		}
		lock.Set(m.Site.Twin, number, digest)
	}
	return lock.Write()
}

func (multiHost) checkProgram(r *twin.Record) error {
	return problem.New(problem.Unable,
		"twin %s is on several hosts, and its volumes were not filled completely; only orrery twin create accepts the program that fills them",
		r.Options.Name).
		Try("run orrery twin destroy %s and create the twin again", r.Options.Name)
}

func (multiHost) decidesTrials() bool { return false }

func (multiHost) bootsWholeSite() bool { return false }
