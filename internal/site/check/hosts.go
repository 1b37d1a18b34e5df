package check

import (
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"orrery/internal/distro"
	"orrery/internal/pattern"
	"orrery/internal/site"
)

// sshAddress is user@host:port, of which user and port may be left out. It cannot be taken for an option.
var sshAddress = pattern.New(`^([A-Za-z_][A-Za-z0-9_.-]*@)?([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func checkHosts(ix *index, found *findings) {
	first := map[string]string{}
	for _, h := range ix.Hosts {
		key := at("host", h.Name)
		checkLabel(found, key, "host", h.Name)
		if !sshAddress().MatchString(h.Address) {
			found.wrong(at("host", h.Name, "address"), `"local" or "user@10.8.1.1"`, "address %q is none of a host", h.Address)
		}
		if other, taken := first[h.Address]; taken {
			found.add(Mistake{
				Key: at("host", h.Name, "address"), What: "address \"" + h.Address + "\" is already that of host " + other,
				Cure: "declare a machine once", Other: at("host", other, "address"),
			})
		} else {
			first[h.Address] = h.Name
		}
		checkUnderlay(found, h, first)
		if !sane(h.Cpus) {
			found.wrong(at("host", h.Name, "cpus"), "leave it out: the host is asked", "cpus = %v is not a number of processors", h.Cpus)
		}
		if h.Oversubscribe != 0 && (!sane(h.Oversubscribe) || h.Oversubscribe < 1 || h.Oversubscribe > 100) {
			found.wrong(at("host", h.Name, "oversubscribe"), "from 1 to 100: 2 gives nodes its processors twice; for fewer processors, say cpus", "oversubscribe = %v is no such factor", h.Oversubscribe)
		}
		if h.Memory != 0 && h.Memory < minMemory {
			found.wrong(at("host", h.Name, "memory"), "leave it out: the host is asked", "memory = %d bytes is less than a node needs", h.Memory)
		}
	}
}

// checkUnderlay checks the address of a host that is for what its nodes send to those of others.
func checkUnderlay(found *findings, h site.Host, first map[string]string) {
	if h.Underlay == (netip.Addr{}) {
		return
	}
	key := at("host", h.Name, "underlay")
	if !h.Underlay.IsGlobalUnicast() || h.Underlay.Zone() != "" || h.Underlay.Is4In6() {
		found.wrong(key, `such as "10.8.1.1": one by which the other hosts reach it`, "underlay %s is no address of a host", h.Underlay)
	}
	text := "underlay " + h.Underlay.String()
	if other, taken := first[text]; taken {
		found.add(Mistake{Key: key, What: text + " is already that of host " + other, Cure: "each host has its own", Other: at("host", other, "underlay")})
		return
	}
	first[text] = h.Name
}

// sane reports whether a number of processors can be one.
func sane(cpus float64) bool { return cpus >= 0 && !math.IsInf(cpus, 0) }

// suite also covers "stable" and "bookworm-backports".
var suite = pattern.New(`^[a-z][a-z0-9-]*$`)

var component = pattern.New(`^[a-z][a-z0-9/-]*$`)

func checkImages(ix *index, found *findings) {
	for _, i := range ix.Images {
		key := at("image", i.Name)
		checkLabel(found, key, "image", i.Name)
		switch {
		case i.Suite == "" && i.Import == "":
			found.wrong(key, `write suite = "bookworm"`, "image %s has neither suite nor import", i.Name)
		case i.Suite != "" && i.Import != "":
			found.wrong(at("image", i.Name, "import"), "take one of them out", "image %s has both suite and import", i.Name)
		case i.Suite != "" && !suite().MatchString(i.Suite):
			found.wrong(at("image", i.Name, "suite"), `write suite = "bookworm"`, "suite %q is none of Debian", i.Suite)
		}
		checkDistribution(found, &i)
		checkDiskImage(found, &i)
		for k, name := range i.Components {
			if !component().MatchString(name) {
				found.wrong(at("image", i.Name, "components", k), `such as "main"`, "component %q is not legal", name)
			}
		}
		for k, name := range i.Packages {
			checkDebianPackage(found, at("image", i.Name, "packages", k), name)
		}
	}
}

// checkDistribution checks that an image is of one that is known, and of a suite that it has. An image that names none may be of a suite that only its mirror has.
func checkDistribution(found *findings, i *site.Image) {
	if i.Distribution == "" {
		return
	}
	d := distro.Named(i.Distribution)
	if d == nil {
		known := names(distro.All, func(d **distro.Distribution) string { return (*d).Name })
		found.wrong(at("image", i.Name, "distribution"), "use "+sentence(known), "distribution %q is not known", i.Distribution)
	} else if i.Suite != "" && !d.Has(i.Suite) {
		cure := "use " + sentence(slices.Concat(d.Suites, d.Moving))
		found.wrong(at("image", i.Name, "suite"), cure, "%s has no suite %q", d.Title, i.Suite)
	}
}

// checkMirror refuses what is no URL; an apt mirror may be given as apt understands it.
func checkMirror(ix *index, found *findings) {
	checkReachable(ix, found)
	m := &ix.Mirror
	for _, part := range []struct{ key, value, schemes string }{
		{"apt", m.Apt, "http https file copy mirror mirror+file mirror+http mirror+https"},
		{"security", m.Security, "http https file copy mirror mirror+file mirror+http mirror+https"},
		{"pypi", m.PyPI, "http https file"}, {"proxy", m.Proxy, "http https socks5 socks5h"},
	} {
		u, err := url.Parse(part.value)
		if part.value != "" && (err != nil || !strings.Contains(" "+part.schemes+" ", " "+u.Scheme+" ") || strings.ContainsAny(part.value, " \t\n\"'")) {
			found.wrong(at("mirror", part.key), "write http://…", "%s = %q is no URL", part.key, part.value)
			continue
		}
		if part.value != "" && (u.Scheme == "file" || u.Scheme == "copy") && (u.Host != "" || !strings.HasPrefix(u.Path, "/")) {
			found.wrong(at("mirror", part.key), "write file:///srv/mirror, with three slashes", "%s = %q is not a directory of this host", part.key, part.value)
		}
	}
}

// reachable is a name or address of a machine, and perhaps a port.
var reachable = pattern.New(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[1-9][0-9]{0,4})?$`)

// checkReachable checks what builds may reach besides the mirrors.
func checkReachable(ix *index, found *findings) {
	for i, h := range ix.Mirror.Hosts {
		if !reachable().MatchString(h) {
			found.wrong(at("mirror", "hosts", i), `such as "github.com" or "10.1.2.3:8080"`, "hosts names %q, which is no machine", h)
		}
	}
}

func checkImageName(ix *index, found *findings, key []string, name string) {
	if _, ok := ix.Image(name); !ok {
		found.unknown(key, "image", name, names(ix.Images, func(i *site.Image) string { return i.Name }))
	}
}
