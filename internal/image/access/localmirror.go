package access

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/site/distro"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// BuildDir is the directory of a scratch with everything that is only for building. It is not part
// of the layer.
//
//	apt.conf      how to reach packages (APT_CONFIG): proxies, certificates, no questions
//	sources.list  the host's archives, or the site's mirrors, if the base was built from a suite
//	keys/         the keys that the archives are signed with
//	ca.pem        certificates to trust (SSL_CERT_FILE, PIP_CERT, …)
//	resolv.conf   as /etc/resolv.conf: empty, since proxies look names up
//	orrery/       as /etc/orrery: the host's hosts
//	archives/     Debian packages, shared by all builds
//	lists/        package lists, shared by all builds from the same sources
//	pip/          pip's cache (PIP_CACHE_DIR), shared by all builds
//	mirror-…/     the site's mirrors that are directories of this host
const BuildDir = "/run/orrery-build"

// EmptyResolvConf is the resolv.conf of a scratch.
const EmptyResolvConf = "# Nothing is reached from here but by the proxies of the environment.\n"

// HostsFile returns the hosts(5) file of a scratch. It has the names in this host's file, which may
// include that of a mirror.
func HostsFile() string {
	text, err := os.ReadFile("/etc/hosts")
	if err != nil || !bytes.Contains(text, []byte("localhost")) {
		text = append([]byte("127.0.0.1 localhost\n::1 localhost\n"), text...)
	}
	return string(text) + "\n127.0.1.1 build\n"
}

// MirrorKeyFile is the name of the signing key's file in an archive that is a directory of this host.
const MirrorKeyFile = "key.asc"

// LocalDir returns the directory of this host that a URL such as file:///srv/mirror/apt names.
func LocalDir(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" && u.Scheme != "copy" || !filepath.IsAbs(u.Path) {
		return "", false
	}
	return filepath.Clean(u.Path), true
}

// WithCopyURLs makes apt copy packages from a directory of this host to the cache, as it does with
// downloaded packages. With a file: URL, apt would only remember where they are, but mmdebstrap
// unpacks packages from the cache.
func WithCopyURLs(from []distro.Source) []distro.Source {
	var all []distro.Source
	for _, s := range from {
		if dir, ok := LocalDir(s.URI); ok {
			s.URI = "copy://" + dir
		}
		all = append(all, s)
	}
	return all
}

// maxKeyBytes is the maximum size of the key of an archive.
const maxKeyBytes = 1 << 20

// CompleteMirror completes a declared mirror. If the mirror is a directory of this host, the key in it is
// used. If it has security updates, they are taken from it as well.
func CompleteMirror(m site.Mirror) (site.Mirror, error) {
	dir, ok := LocalDir(m.Apt)
	if !ok {
		return m, nil
	}
	if _, err := os.Stat(filepath.Join(dir, "dists")); err != nil {
		return m, problem.New(problem.Mistake, "[mirror] apt = %q: the archive does not exist", m.Apt).At("site.toml").Because(err).
			Try("orrery mirror pull creates one")
	}
	if key, err := tree.ReadFile(filepath.Join(dir, MirrorKeyFile), maxKeyBytes); err == nil && len(m.Key) == 0 {
		m.Key = key
	}
	if pockets, _ := filepath.Glob(filepath.Join(dir, "dists", "*-security")); len(pockets) > 0 && m.Security == "" {
		m.Security = m.Apt
	}
	return m, nil
}

// A LocalMirror is a directory of this host that is mounted in a scratch.
type LocalMirror struct{ Dir, Name string }

// ForBuild returns the mirror with its paths in a scratch, and the directories that must be mounted
// for that. Their names depend on their content, so that package lists of one archive are never
// used for another archive, or for an earlier state of it.
func ForBuild(m site.Mirror) (site.Mirror, []LocalMirror, error) {
	m, err := CompleteMirror(m)
	if err != nil {
		return m, nil, err
	}
	var all []LocalMirror
	seen := map[string]bool{}
	place := func(uri *string) error {
		dir, ok := LocalDir(*uri)
		if !ok {
			return nil
		}
		if _, err := os.Stat(dir); err != nil {
			return problem.New(problem.Mistake, "[mirror] names %q, which does not exist", *uri).At("site.toml").Because(err).
				Try("orrery mirror pull creates a mirror")
		}
		releases, err := filepath.Glob(filepath.Join(dir, "dists", "*", "Release"))
		if err != nil {
			return err
		}
		text := []byte(dir)
		for _, release := range releases {
			content, err := tree.ReadFile(release, 16<<20)
			if err != nil {
				return err
			}
			text = append(text, content...)
		}
		n := LocalMirror{dir, "mirror-" + spec.DigestBytes(text)}
		if !seen[n.Name] {
			seen[n.Name] = true
			all = append(all, n)
		}
		scheme, _, _ := strings.Cut(*uri, ":")
		*uri = scheme + "://" + BuildDir + "/" + n.Name
		return nil
	}
	for _, uri := range []*string{&m.Apt, &m.Security, &m.PyPI} {
		if err := place(uri); err != nil {
			return m, nil, err
		}
	}
	return m, all, nil
}
