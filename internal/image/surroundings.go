package image

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/site"
	"orrery/internal/site/distro"
)

// A provision is what every scratch has only for building, at access.BuildDir.
type provision struct {
	dir      string // directory on this host
	archives string // packages that all builds share
	mirror   site.Mirror
	near     []access.LocalMirror
	reach    *access.Access
}

// provide creates the directory of a scratch that is only for building. It also finds out how
// packages can be fetched from there.
func (g *staging) provide(m site.Mirror) (*provision, error) {
	p := &provision{dir: filepath.Join(g.dir, "build"), archives: g.store.Cache.archives()}
	for _, d := range []string{filepath.Join(p.dir, "keys"), filepath.Join(p.dir, "archives"),
		filepath.Join(p.archives, "partial")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	var err error
	if p.mirror, p.near, err = access.ForBuild(m); err != nil {
		return nil, err
	}
	for _, n := range p.near {
		if err := os.MkdirAll(filepath.Join(p.dir, n.Name), 0o755); err != nil {
			return nil, err
		}
	}
	p.reach = access.FromHost(p.mirror)
	return p, nil
}

// binds returns the mounts that make the provision visible in a scratch.
func (p *provision) binds() []mountBind {
	binds := []mountBind{
		{source: p.dir, target: access.BuildDir[1:], readOnly: true, make: true},
		{source: p.archives, target: access.BuildDir[1:] + "/archives"},
	}
	for _, n := range p.near {
		binds = append(binds, mountBind{source: n.Dir, target: access.BuildDir[1:] + "/" + n.Name, readOnly: true})
	}
	return binds
}

// buildMounts returns the mounts of a scratch on a base image, and the environment of its commands.
func (g *staging) buildMounts(tree string, base *Record, m site.Mirror) (binds []mountBind, env []string, err error) {
	p, err := g.provide(m)
	if err != nil {
		return nil, nil, err
	}
	dir, reach := p.dir, p.reach
	for _, d := range []string{filepath.Join(dir, "orrery"), filepath.Join(dir, "lists"), filepath.Join(dir, "pip"),
		g.store.Cache.lists(), g.store.Cache.pip()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, nil, err
		}
	}
	temporary := filepath.Join(g.dir, "tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return nil, nil, err
	}
	if err := os.Chmod(temporary, os.ModeSticky|0o777); err != nil {
		return nil, nil, err
	}
	suite := base.Parts["suite"]
	from, err := distro.HostSources(tree)
	// use the site's mirror instead of the sources that the image was made from
	foreign := suite == "" && (m.Apt != "" || err != nil || len(from) == 0)
	if foreign {
		suite = distro.OsRelease(tree)["VERSION_CODENAME"]
	}
	img := site.Image{Distribution: base.Parts["distribution"], Suite: suite,
		Components: strings.Fields(base.Parts["components"])}
	if suite != "" {
		from, err = distro.Sources("/", img, p.mirror)
	}
	if err != nil {
		return nil, nil, err
	}
	g.way = reach.Redirect(reach.HostPorts(from, p.mirror))
	settings, err := reach.WriteConfig(dir, access.BuildDir)
	if err != nil {
		return nil, nil, err
	}
	files := map[string]string{"resolv.conf": access.EmptyResolvConf, "orrery/hosts": access.HostsFile()}
	env = []string{
		"PATH=" + host.Path, "HOME=/root", "LANG=C.UTF-8",
		"PIP_CACHE_DIR=" + access.BuildDir + "/pip", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore",
		"PIP_NO_INPUT=1",
		"PIP_PROGRESS_BAR=off",
	}
	env = append(env, reach.Environ()...)
	if len(reach.Roots) > 0 {
		for _, name := range []string{"SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"} {
			env = append(env, name+"="+access.BuildDir+"/ca.pem")
		}
	}
	scratch := &distro.Scratch{BuildDir: access.BuildDir, Access: settings, Alone: foreign}
	if suite != "" {
		if scratch.Sources, err = writeSources(from, distro.ForImage(img).Packages.Trusted, dir); err != nil {
			return nil, nil, err
		}
	}
	own, environ := distro.ForImage(img).Packages.In(scratch)
	env = append(env, environ...)
	maps.Copy(files, own)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, nil, err
		}
	}
	binds = append(p.binds(),
		mountBind{source: g.store.Cache.lists(), target: access.BuildDir[1:] + "/lists"},
		mountBind{source: g.store.Cache.pip(), target: access.BuildDir[1:] + "/pip"},
		mountBind{source: dir, file: "resolv.conf", target: "etc/resolv.conf", readOnly: true},
		mountBind{source: dir, file: "orrery", target: "etc/orrery", readOnly: true},
		mountBind{source: temporary, target: "tmp"})
	return binds, env, nil
}

// writeSources returns the sources.list of a scratch and stores its keys beside it. They are the
// host's current keys, which may have changed since the base image was built.
func writeSources(from []distro.Source, trusting, dir string) (string, error) {
	trusted, err := filepath.Glob(trusting)
	if err != nil {
		return "", err
	}
	from = slices.Clone(from)
	for i, s := range from {
		keys := []string{s.Key}
		if s.Key == "" {
			// apt's trusted keys on this host, named explicitly, because the scratch only has those
			// of the base image
			keys = trusted
		}
		var paths []string
		for _, key := range keys {
			text, name := []byte(key+"\n"), keyName(i)
			if !strings.Contains(key, "BEGIN PGP") {
				if text, err = os.ReadFile(key); err != nil {
					return "", err
				}
				name = strings.ReplaceAll(strings.TrimPrefix(key, "/"), "/", "-")
				if bytes.HasPrefix(text, []byte("-----BEGIN PGP")) && !strings.HasSuffix(name, ".asc") {
					name += ".asc" // apt detects the format by the file name
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "keys", name), text, 0o644); err != nil {
				return "", err
			}
			paths = append(paths, access.BuildDir+"/keys/"+name)
		}
		from[i].Key = strings.Join(paths, ",")
	}
	return distro.FormatSources(access.WithCopyURLs(from)), nil
}
