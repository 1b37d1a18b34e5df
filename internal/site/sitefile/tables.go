package sitefile

import (
	"bytes"
	"path/filepath"
	"strconv"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
	"orrery/internal/strict"
	"orrery/internal/text/sanitize"
)

// tables sets all declarations except nodes, groups and roles.
func (l *loader) tables() {
	f, s := &l.file, l.site
	s.Settings = f.Settings
	s.Twins, s.Hosts, s.Networks, s.Volumes = f.Twin, f.Hosts.Values(), f.Networks.Values(), f.Volumes.Values()
	s.Tests, s.Hooks = f.Tests.Values(), f.Hooks.Values()
	s.Backup, s.Snapshot, s.Watch = f.Backup, f.Snapshot, f.Watch
	l.alert()
	if len(s.Hosts) == 0 {
		s.Hosts = []site.Host{{Name: "local", Address: "local"}}
	}
	for i := range s.Networks {
		if n := &s.Networks[i]; n.Kind == site.Bridge {
			n.Kind = "" // the explicit and the implicit default are the same
		}
		s.Networks[i].Place = where(Name, f.Networks[i].At)
	}
	for _, t := range f.VethPairs {
		s.VethPairs = append(s.VethPairs, l.vethPair(t))
	}
	for _, t := range f.Images {
		s.Images = append(s.Images, l.image(t))
	}
	for _, t := range f.Secrets {
		s.Secrets = append(s.Secrets, l.secret(t))
	}
	for _, t := range f.Releases {
		l.release(t)
	}
	l.mirror()
}

// alert adds [alert] to the hooks.
func (l *loader) alert() {
	h := l.file.Alert
	if _, depth := l.report.roots[Name].Find("alert"); depth == 0 {
		return
	}
	h.Name, h.Alert = "alert", true
	if h.On == nil {
		h.On = event.Alerting
	}
	l.site.Hooks = append(l.site.Hooks, h)
}

func (l *loader) vethPair(t strict.Named[vethPairTable]) site.VethPair {
	veth, ends := t.Value.VethPair, t.Value.Ends
	copy(veth.Ends[:], ends)
	if at := t.At.Keys["ends"]; at != nil && !l.report.bad[at] && len(ends) != len(veth.Ends) {
		l.report.addAt(Name, at, mistake("veth pair %s has %d ends", t.Name, len(ends)).Try(`write ends = ["w0", "w1"]`))
	}
	return veth
}

func (l *loader) image(t strict.Named[site.Image]) site.Image {
	i := t.Value
	if stamp := l.dir.stamps[t.Name]; i.Import != "" && stamp != "" {
		i.Import, i.Stamp = filepath.Base(i.Import), stamp
	} else if i.Import != "" {
		var p *problem.Problem
		if i.Import, i.From, i.Stamp, p = l.chain.of(t.At.Keys["import"]).dir.image(i.Import); p != nil {
			l.report.addAt(Name, t.At.Keys["import"], mistake("import: %s", p.What).Try("%s", p.Cure))
		}
	}
	return i
}

func (l *loader) secret(t strict.Named[site.Secret]) site.Secret {
	x := t.Value
	if x.File != "" {
		x.File = l.chain.of(t.At.Keys["file"]).dir.absPath(x.File)
		if l.chain.contain(x.File) {
			l.report.addAt(Name, t.At.Keys["file"],
				mistake("the secret's file %q is in the site directory, which is under version control", t.Value.File).
					Try("move it elsewhere, such as /root/secrets/%s", t.Name))
		}
	}
	if x.Format != "" && x.Generate == 0 && x.File == "" && len(x.Command) == 0 && t.At.Keys["generate"] == nil {
		x.Generate = defaultSecretLength
	}
	return x
}

// defaultSecretLength is the length of secrets of which only the format is declared.
const defaultSecretLength = 32

func (l *loader) release(t strict.Named[releaseTable]) {
	r := t.Value.Release
	number, err := strconv.Atoi(t.Name)
	if err != nil || strconv.Itoa(number) != t.Name {
		l.report.addAt(Name, t.At, mistake("release %q is not a number", t.Name).Try("write [release.700]"))
		return
	}
	r.Number = number
	if file := t.Value.Requirements; file != nil {
		r.Requirements = l.require(*file, t.At.Keys["requirements"])
	}
	l.site.Releases = append(l.site.Releases, r)
}

func (l *loader) mirror() {
	t, m := &l.file.Mirror, &l.site.Mirror
	*m = t.Mirror
	m.CA, m.Key = l.mirrorFile("ca", t.CA), l.mirrorFile("key", t.Key)
	if m.Key != nil && !bytes.Contains(m.Key, []byte("BEGIN PGP PUBLIC KEY")) {
		at, _ := l.report.roots[Name].Find("mirror", "key")
		l.report.addAt(Name, at, mistake("key: %s is not an armoured public key",
			*t.Key).Try("write one with gpg --armor --export"))
	}
}

// mirrorFile reads a file that a key of [mirror] names. It returns nil if the key is missing.
func (l *loader) mirrorFile(key string, name *string) []byte {
	if name == nil {
		return nil
	}
	at, _ := l.report.roots[Name].Find("mirror", key)
	content, p := l.chain.of(at).dir.readNamed(*name)
	if p != nil {
		l.report.addAt(Name, at, mistake("%s: %s", key, p.What).Try("%s", p.Cure))
		return nil
	}
	return content
}

// require reads a requirements file. It reads each file only once.
func (l *loader) require(file string, at *strict.Node) site.Requirements {
	label := l.chain.label(at, file)
	if r, ok := l.requirements[label]; ok {
		return r
	}
	r := site.Requirements{File: label}
	content, p := l.chain.of(at).dir.readNamed(file)
	if p != nil {
		l.report.addAt(Name, at, mistake("requirements: %s", p.What).Try("%s", p.Cure))
		r.File = "" // that packages are not in it would only repeat this
	}
	content, encoded := sanitize.StripBOM(content)
	if encoded != nil {
		l.report.addAt(Name, at, mistake("requirements: %s: %s", file, encoded))
	}
	r.Text = string(content)
	l.requirements[label] = r
	return r
}
