package sitefile

import (
	"bytes"
	"net/netip"
	"strconv"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/visible"
)

// tables fills in all that is declared but nodes, groups and roles.
func (l *loader) tables() {
	f, s := &l.file, l.site
	s.Name, s.Owner, s.Production, s.Vars = f.Site.Name, f.Site.Owner, f.Site.Production, f.Site.Vars
	s.Owners, s.Twins = f.Site.Owners, twinRules(&f.Twin)
	for _, t := range f.Hosts {
		s.Hosts = append(s.Hosts, site.Host{
			Name: t.name, Address: orElse(t.value.Address, "local"), Cpus: t.value.Cpus, Memory: int64(t.value.Memory),
		})
	}
	if len(s.Hosts) == 0 {
		s.Hosts = []site.Host{{Name: "local", Address: "local"}}
	}
	for _, t := range f.Networks {
		n := site.Network{
			Name: t.name, Subnet: netip.Prefix(t.value.Subnet), Gateway: netip.Addr(t.value.Gateway), NAT: t.value.NAT, MTU: 1500,
			Kind: t.value.Kind, Interface: t.value.Interface, Host: t.value.Host, Spoof: t.value.Spoof,
		}
		if n.Kind == site.Bridge {
			n.Kind = "" // what is said and what is meant without a word is the same
		}
		if t.value.MTU != nil {
			n.MTU = *t.value.MTU
		}
		s.Networks = append(s.Networks, n)
	}
	for _, t := range f.Cables {
		s.Cables = append(s.Cables, l.cable(t))
	}
	for _, t := range f.Images {
		s.Images = append(s.Images, l.image(t))
	}
	for _, t := range f.Volumes {
		s.Volumes = append(s.Volumes, site.Volume{
			Name: t.name, Path: t.value.Path, NFS: t.value.NFS, Shared: t.value.Shared,
			Mirror: t.value.Mirror, Every: time.Duration(value(t.value.Every, nil, 0)),
		})
	}
	for _, t := range f.Secrets {
		s.Secrets = append(s.Secrets, l.secret(t))
	}
	for _, t := range f.Releases {
		l.release(t)
	}
	for _, t := range f.Tests {
		s.Tests = append(s.Tests, site.Test{
			Name: t.name, Node: t.value.Node, Command: t.value.Command, User: orElse(t.value.User, "root"),
			Timeout: time.Duration(value(t.value.Timeout, nil, duration(time.Minute))),
		})
	}
	for _, t := range f.Hooks {
		s.Hooks = append(s.Hooks, site.Hook{
			Name: t.name, On: t.value.On, Command: t.value.Command, User: orElse(t.value.User, "nobody"), URL: t.value.URL,
			Timeout: time.Duration(value(t.value.Timeout, nil, duration(10*time.Second))),
		})
	}
	l.mirror()
}

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func (l *loader) cable(t table[cableTable]) site.Cable {
	c := site.Cable{Name: t.name, MTU: value(t.value.MTU, nil, 1500)}
	copy(c.Ends[:], t.value.Ends)
	if at := t.at.keys["ends"]; at != nil && !l.report.bad[at] && len(t.value.Ends) != len(c.Ends) {
		l.report.wrong(Name, at, mistake("cable %s has %d ends", t.name, len(t.value.Ends)).Try(`write ends = ["w0", "w1"]`))
	}
	return c
}

func (l *loader) image(t table[imageTable]) site.Image {
	i := site.Image{Name: t.name, Suite: t.value.Suite, Components: t.value.Components, Packages: t.value.Packages}
	if t.value.Import != nil && *t.value.Import != "" {
		at := t.at.keys["import"]
		var p *problem.Problem
		if i.Import, i.From, i.Stamp, p = l.dir.image(*t.value.Import); p != nil {
			l.report.wrong(Name, at, mistake("import: %s", p.What).Try("%s", p.Cure))
		}
	}
	return i
}

func (l *loader) secret(t table[secretTable]) site.Secret {
	x := site.Secret{Name: t.name, Command: t.value.Command, Generate: t.value.Generate}
	if t.value.File != "" {
		x.File = l.dir.outward(t.value.File)
		if _, inside := l.dir.inward(t.value.File); inside {
			l.report.wrong(Name, t.at.keys["file"], mistake("the secret's file %q is in the site directory, which is under version control", t.value.File).
				Try("move it elsewhere, such as /root/secrets/%s", t.name))
		}
	}
	return x
}

func (l *loader) release(t table[releaseTable]) {
	number, err := strconv.Atoi(t.name)
	if err != nil || strconv.Itoa(number) != t.name {
		l.report.wrong(Name, t.at, mistake("release %q is no number", t.name).Try("write [release.700]"))
		return
	}
	r := site.Release{Number: number, Image: t.value.Image, Notes: t.value.Notes, Roles: t.value.Roles}
	if t.value.Requirements != nil {
		r.Requirements = l.require(*t.value.Requirements, t.at.keys["requirements"])
	}
	l.site.Releases = append(l.site.Releases, r)
}

func (l *loader) mirror() {
	m := &l.file.Mirror
	l.site.Mirror = site.Mirror{
		Apt: m.Apt, Security: m.Security, PyPI: m.PyPI, Proxy: m.Proxy, Hosts: m.Hosts, CA: l.mirrorFile("ca", m.CA), Key: l.mirrorFile("key", m.Key),
	}
	if key := l.site.Mirror.Key; m.Key != nil && key != nil && !bytes.Contains(key, []byte("BEGIN PGP PUBLIC KEY")) {
		at, _ := l.report.roots[Name].find("mirror", "key")
		l.report.wrong(Name, at, mistake("key: %s is no armoured public key", *m.Key).Try("write one with gpg --armor --export"))
	}
}

// mirrorFile reads a file that a key of [mirror] names; nil where there is none.
func (l *loader) mirrorFile(key string, name *string) []byte {
	if name == nil {
		return nil
	}
	content, p := l.dir.named(*name)
	if p != nil {
		at, _ := l.report.roots[Name].find("mirror", key)
		l.report.wrong(Name, at, mistake("%s: %s", key, p.What).Try("%s", p.Cure))
		return nil
	}
	return content
}

// require reads a requirements file, each once.
func (l *loader) require(file string, at *place) site.Requirements {
	if r, ok := l.requirements[file]; ok {
		return r
	}
	r := site.Requirements{File: file}
	content, p := l.dir.named(file)
	if p != nil {
		l.report.wrong(Name, at, mistake("requirements: %s", p.What).Try("%s", p.Cure))
	}
	content, encoded := visible.Unmarked(content)
	if encoded != nil {
		l.report.wrong(Name, at, mistake("requirements: %s: %s", file, encoded))
	}
	r.Text = string(content)
	l.requirements[file] = r
	return r
}

func twinRules(t *twinTable) site.TwinRules {
	r := site.TwinRules{Members: t.Members, Most: 1, Expires: 24 * time.Hour, NAT: t.NAT, Data: t.Data}
	if t.Most != nil {
		r.Most = *t.Most
	}
	if t.Expires != nil {
		r.Expires = time.Duration(*t.Expires)
	}
	return r
}
