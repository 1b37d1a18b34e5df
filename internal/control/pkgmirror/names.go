package pkgmirror

import (
	"path"
	"strconv"
	"strings"

	"orrery/internal/site/pins"
)

// sdists are the suffixes of source archives.
var sdists = []string{".tar.gz", ".zip", ".tar.bz2", ".tar.xz"}

// packageOfFile returns the package of a file in an index. It returns false if the file belongs to no
// package.
func packageOfFile(file string) (p Package, ok bool) {
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

// sameVersion reports whether two versions are the same. One is in the form of package metadata, and the
// other in that of file names.
func sameVersion(a, b string) bool {
	plain := strings.NewReplacer("_", ".", "+", ".", "-", ".")
	return strings.EqualFold(plain.Replace(a), plain.Replace(b))
}

func isSource(file string) bool { return !strings.HasSuffix(file, ".whl") }

// isInstallable reports whether a version of Python ("3.11") can install a file on a machine ("x86_64"). It
// implements PEP 425 as far as needed to distinguish the Pythons of Debian.
func isInstallable(file, python, machine string) bool {
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

// poolPath returns the path of a Debian package in the archive. It contains the suite, because two
// suites may have different packages of the same name and version.
func poolPath(suite, name, version, arch string) string {
	if _, after, epoch := strings.Cut(version, ":"); epoch {
		version = after // as in Debian's file names, since a URL must not contain a colon or its escape
	}
	first := name[:1]
	if strings.HasPrefix(name, "lib") && len(name) > 3 {
		first = name[:4]
	}
	return path.Join("pool", suite, first, name, name+"_"+version+"_"+arch+".deb")
}

// cacheName returns the name of a package in apt's cache.
func cacheName(name, version, arch string) string {
	return name + "_" + strings.ReplaceAll(version, ":", "%3a") + "_" + arch + ".deb"
}

// pinnedRequirements returns the lines of a requirements file for the packages, including hashes.
func pinnedRequirements(requirements string, packages []Package) (lines []string, hashed bool) {
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
