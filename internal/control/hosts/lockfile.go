package hosts

import (
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

// A LockFile is the releases.lock of a site directory. It lists the trusted editions of the
// releases of a site and its twins.
type LockFile struct {
	dir, twin string
	notice    func(format string, args ...any)
}

// Lock returns releases.lock, for the releases of the site.
func (c *Connector) Lock() LockFile { return LockFile{c.Dir, c.Site.Twin, c.Notice} }

// Vouch records the digest of the edition of a release.
func (l LockFile) Vouch(number int, digest string) (*sitefile.Lock, error) {
	lock, err := l.read()
	if err != nil || lock.Digest(l.twin, number) == digest {
		return lock, err
	}
	lock.Set(l.twin, number, digest)
	if err := lock.Write(); err != nil {
		return nil, err
	}
	l.notice("%s has a new digest for release %d: commit the file, so that other control hosts get it",
		sitefile.LockName, number)
	return lock, nil
}

// RemoveTwin removes the releases of a destroyed twin.
func (l LockFile) RemoveTwin(name string) {
	l.removeLines(func(lock *sitefile.Lock) { lock.RemoveTwin(name) })
}

// removeLines removes lines from the file. Failures are only reported, because lines that stay are
// harmless.
func (l LockFile) removeLines(remove func(*sitefile.Lock)) {
	lock, err := l.read()
	if err == nil {
		remove(lock)
		err = lock.Write()
	}
	if err != nil {
		l.notice("%v", err)
	}
}

// read reads the file.
func (l LockFile) read() (*sitefile.Lock, error) {
	if l.dir == "" {
		return nil, problem.New(problem.Usage, "no site directory, and therefore no %s", sitefile.LockName).
			Try("name the site directory with -C")
	}
	return sitefile.ReadLock(l.dir)
}
