package image

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// MirrorKey is the name, in an archive that is a directory of this host, of the key that it is signed with.
const MirrorKey = "key.asc"

// LocalDir gives the directory of this host that a URL such as file:///srv/mirror/apt names.
func LocalDir(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" && u.Scheme != "copy" || !filepath.IsAbs(u.Path) {
		return "", false
	}
	return filepath.Clean(u.Path), true
}

// copied has apt copy packages out of a directory of this host into the cache, as it does with those from elsewhere: of an archive
// at file: it would only remember where they are, and mmdebstrap unpacks what is in the cache.
func copied(from []source) []source {
	var all []source
	for _, s := range from {
		if dir, ok := LocalDir(s.URI); ok {
			s.URI = "copy://" + dir
		}
		all = append(all, s)
	}
	return all
}

// settled gives a mirror with all that follows from what was declared: the key of one on this host lies in it, and what it
// has of security updates is taken from it.
func settled(m site.Mirror) (site.Mirror, error) {
	dir, ok := LocalDir(m.Apt)
	if !ok {
		return m, nil
	}
	if _, err := os.Stat(filepath.Join(dir, "dists")); err != nil {
		return m, problem.New(problem.Mistake, "[mirror] apt = %q: no archive is there", m.Apt).At("site.toml").Because(err).
			Try("orrery mirror pull makes one")
	}
	if key, err := tree.ReadFile(filepath.Join(dir, MirrorKey), mostSettings); err == nil && len(m.Key) == 0 {
		m.Key = key
	}
	if pockets, _ := filepath.Glob(filepath.Join(dir, "dists", "*-security")); len(pockets) > 0 && m.Security == "" {
		m.Security = m.Apt
	}
	return m, nil
}

// A nearby is a directory of this host that a scratch is to see.
type nearby struct{ dir, name string }

// bring gives the mirror as a scratch finds it, and the directories that it must see for that. Their names follow from what is in
// them, so that package lists of one archive are never taken for those of another or of a former time.
func bring(m site.Mirror) (site.Mirror, []nearby, error) {
	m, err := settled(m)
	if err != nil {
		return m, nil, err
	}
	var all []nearby
	seen := map[string]bool{}
	place := func(uri *string) error {
		dir, ok := LocalDir(*uri)
		if !ok {
			return nil
		}
		if _, err := os.Stat(dir); err != nil {
			return problem.New(problem.Mistake, "[mirror] names %q, which is not there", *uri).At("site.toml").Because(err).
				Try("orrery mirror pull makes a mirror")
		}
		releases, err := filepath.Glob(filepath.Join(dir, "dists", "*", "Release"))
		if err != nil {
			return err
		}
		text := []byte(dir)
		for _, release := range releases {
			is, err := tree.ReadFile(release, 16<<20)
			if err != nil {
				return err
			}
			text = append(text, is...)
		}
		n := nearby{dir, "mirror-" + spec.DigestBytes(text)}
		if !seen[n.name] {
			seen[n.name] = true
			all = append(all, n)
		}
		scheme, _, _ := strings.Cut(*uri, ":")
		*uri = scheme + "://" + inScratch + "/" + n.name
		return nil
	}
	for _, uri := range []*string{&m.Apt, &m.Security, &m.PyPI} {
		if err := place(uri); err != nil {
			return m, nil, err
		}
	}
	return m, all, nil
}
