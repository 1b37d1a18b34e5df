package pkgmirror

import (
	"path"
	"strconv"
	"strings"

	"orrery/internal/site/pins"
)

// sdists are the ends of names of source archives.
var sdists = []string{".tar.gz", ".zip", ".tar.bz2", ".tar.xz"}

// fileOf tells of which package a file of an index is; not ok: of none.
func fileOf(file string) (p Package, ok bool) {
	if stem, wheel := strings.CutSuffix(file, ".whl"); wheel {
		parts := strings.Split(stem, "-")
		if len(parts) < 5 {
			return p, false
		}
		return Package{pins.Normal(parts[0]), parts[1]}, true
	}
	for _, end := range sdists {
		if stem, sdist := strings.CutSuffix(file, end); sdist {
			dash := strings.LastIndexByte(stem, '-')
			if dash < 1 {
				return p, false
			}
			return Package{pins.Normal(stem[:dash]), stem[dash+1:]}, true
		}
	}
	return p, false
}

// same reports whether two versions are one, written as a package says it and as the name of its file does.
func same(a, b string) bool {
	plain := strings.NewReplacer("_", ".", "+", ".", "-", ".")
	return strings.EqualFold(plain.Replace(a), plain.Replace(b))
}

func isSource(file string) bool { return !strings.HasSuffix(file, ".whl") }

// fits reports whether a file can be installed by a version of Python ("3.11") on a machine
// ("x86_64"): PEP 425, as far as it tells the Pythons of Debian from one another.
func fits(file, python, machine string) bool {
	if isSource(file) {
		return true
	}
	parts := strings.Split(strings.TrimSuffix(file, ".whl"), "-")
	if len(parts) < 5 {
		return false
	}
	tags, abi, platform := parts[len(parts)-3], parts[len(parts)-2], parts[len(parts)-1]
	if platform != "any" && !strings.HasSuffix(platform, "_"+machine) {
		return false
	}
	minor := func(tag, before string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(tag, before))
		if err != nil || !strings.HasPrefix(tag, before) {
			return -1
		}
		return n
	}
	mine := minor(python, "3.")
	for _, tag := range strings.Split(tags, ".") {
		cp := minor(tag, "cp3")
		switch {
		case tag == "py3", tag == "py"+strings.ReplaceAll(python, ".", ""):
			return true
		case cp == mine && cp >= 0, cp >= 0 && cp < mine && (strings.HasSuffix(abi, "abi3") || abi == "none"):
			return true
		}
	}
	return false
}

// poolPath returns where a Debian package lies in the archive; two suites may have different
// packages of one name and version.
func poolPath(suite, name, version, arch string) string {
	if _, after, epoch := strings.Cut(version, ":"); epoch {
		version = after // as Debian names its files: a colon, or what stands for one, is not to be in a URL
	}
	first := name[:1]
	if strings.HasPrefix(name, "lib") && len(name) > 3 {
		first = name[:4]
	}
	return path.Join("pool", suite, first, name, name+"_"+version+"_"+arch+".deb")
}

// cacheName returns the name under which apt keeps a package that it has fetched.
func cacheName(name, version, arch string) string {
	return name + "_" + strings.ReplaceAll(version, ":", "%3a") + "_" + arch + ".deb"
}

// pinned returns the lines of a requirements file that concern packages, hashes and all.
func pinned(requirements string, packages []Package) (lines []string, hashed bool) {
	wanted := map[string]bool{}
	for _, p := range packages {
		wanted[p.Name] = true
	}
	for _, l := range pins.Lines(requirements) {
		if l.Pin == nil || !wanted[pins.Normal(l.Pin.Name)] {
			continue
		}
		lines = append(lines, strings.TrimSpace(strings.Join(strings.Fields(l.Text), " ")+" "+
			strings.Join(strings.Fields(l.Hashes), " ")))
		hashed = hashed || l.Hashed
	}
	return lines, hashed
}
