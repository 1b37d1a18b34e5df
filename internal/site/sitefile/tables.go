package sitefile

import (
	"bytes"
	"net/netip"
	"strconv"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/strict"
	"orrery/internal/visible"
)

// tables fills in all that is declared but nodes, groups and roles.
func (l *loader) tables() {
	f, s := &l.file, l.site
	s.Name, s.Owner, s.Production, s.Vars = f.Site.Name, f.Site.Owner, f.Site.Production, f.Site.Vars
	s.Owners, s.Twins = f.Site.Owners, twinRules(&f.Twin)
	for _, t := range f.Hosts {
		s.Hosts = append(s.Hosts, site.Host{
			Name: t.Name, Address: orElse(t.Value.Address, "local"), Cpus: t.Value.Cpus, Memory: int64(t.Value.Memory),
		})
	}
	if len(s.Hosts) == 0 {
		s.Hosts = []site.Host{{Name: "local", Address: "local"}}
	}
	for _, t := range f.Networks {
		n := site.Network{
			Name: t.Name, Subnet: netip.Prefix(t.Value.Subnet), Gateway: netip.Addr(t.Value.Gateway), NAT: t.Value.NAT, MTU: 1500,
			Kind: t.Value.Kind, Interface: t.Value.Interface, Host: t.Value.Host, Spoof: t.Value.Spoof,
		}
		if n.Kind == site.Bridge {
			n.Kind = "" // what is said and what is meant without a word is the same
		}
		if t.Value.MTU != nil {
			n.MTU = *t.Value.MTU
		}
		s.Networks = append(s.Networks, n)
	}
	for _, t := range f.VethPairs {
		s.VethPairs = append(s.VethPairs, l.vethPair(t))
	}
	for _, t := range f.Images {
		s.Images = append(s.Images, l.image(t))
	}
	for _, t := range f.Volumes {
		s.Volumes = append(s.Volumes, site.Volume{
			Name: t.Name, Path: t.Value.Path, NFS: t.Value.NFS, Shared: t.Value.Shared,
			Mirror: t.Value.Mirror, Every: value(t.Value.Every, nil, 0),
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
			Name: t.Name, Node: t.Value.Node, Command: t.Value.Command, User: orElse(t.Value.User, "root"),
			Timeout: value(t.Value.Timeout, nil, time.Minute),
		})
	}
	for _, t := range f.Hooks {
		s.Hooks = append(s.Hooks, site.Hook{
			Name: t.Name, On: t.Value.On, Command: t.Value.Command, User: orElse(t.Value.User, "nobody"), URL: t.Value.URL,
			Timeout: value(t.Value.Timeout, nil, 10*time.Second),
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

func (l *loader) vethPair(t strict.Named[vethPairTable]) site.VethPair {
	c := site.VethPair{Name: t.Name, MTU: value(t.Value.MTU, nil, 1500)}
	copy(c.Ends[:], t.Value.Ends)
	if at := t.At.Keys["ends"]; at != nil && !l.report.bad[at] && len(t.Value.Ends) != len(c.Ends) {
		l.report.wrong(Name, at, mistake("veth pair %s has %d ends", t.Name, len(t.Value.Ends)).Try(`write ends = ["w0", "w1"]`))
	}
	return c
}

func (l *loader) image(t strict.Named[imageTable]) site.Image {
	i := site.Image{Name: t.Name, Suite: t.Value.Suite, Components: t.Value.Components, Packages: t.Value.Packages}
	if t.Value.Import != nil && *t.Value.Import != "" {
		at := t.At.Keys["import"]
		var p *problem.Problem
		if i.Import, i.From, i.Stamp, p = l.dir.image(*t.Value.Import); p != nil {
			l.report.wrong(Name, at, mistake("import: %s", p.What).Try("%s", p.Cure))
		}
	}
	return i
}

func (l *loader) secret(t strict.Named[secretTable]) site.Secret {
	x := site.Secret{Name: t.Name, Command: t.Value.Command, Generate: t.Value.Generate}
	if t.Value.File != "" {
		x.File = l.dir.outward(t.Value.File)
		if _, inside := l.dir.inward(t.Value.File); inside {
			l.report.wrong(Name, t.At.Keys["file"], mistake("the secret's file %q is in the site directory, which is under version control", t.Value.File).
				Try("move it elsewhere, such as /root/secrets/%s", t.Name))
		}
	}
	return x
}

func (l *loader) release(t strict.Named[releaseTable]) {
	number, err := strconv.Atoi(t.Name)
	if err != nil || strconv.Itoa(number) != t.Name {
		l.report.wrong(Name, t.At, mistake("release %q is no number", t.Name).Try("write [release.700]"))
		return
	}
	r := site.Release{Number: number, Image: t.Value.Image, Notes: t.Value.Notes, Roles: t.Value.Roles}
	if t.Value.Requirements != nil {
		r.Requirements = l.require(*t.Value.Requirements, t.At.Keys["requirements"])
	}
	l.site.Releases = append(l.site.Releases, r)
}

func (l *loader) mirror() {
	m := &l.file.Mirror
	l.site.Mirror = site.Mirror{
		Apt: m.Apt, Security: m.Security, PyPI: m.PyPI, Proxy: m.Proxy, Hosts: m.Hosts, CA: l.mirrorFile("ca", m.CA), Key: l.mirrorFile("key", m.Key),
	}
	if key := l.site.Mirror.Key; m.Key != nil && key != nil && !bytes.Contains(key, []byte("BEGIN PGP PUBLIC KEY")) {
		at, _ := l.report.roots[Name].Find("mirror", "key")
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
		at, _ := l.report.roots[Name].Find("mirror", key)
		l.report.wrong(Name, at, mistake("%s: %s", key, p.What).Try("%s", p.Cure))
		return nil
	}
	return content
}

// require reads a requirements file, each once.
func (l *loader) require(file string, at *strict.Node) site.Requirements {
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
		r.Expires = *t.Expires
	}
	return r
}
