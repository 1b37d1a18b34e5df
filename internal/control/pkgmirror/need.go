package pkgmirror

import (
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/pins"
)

// A Package is one version of a Debian or Python package.
type Package struct{ Name, Version string }

// String returns a package in the form that apt accepts.
func (p Package) String() string { return p.Name + "=" + p.Version }

// A Layer is what the mirror needs to know about a layer in the store.
type Layer struct {
	Digest     string
	Title      string
	Base       *Layer // nil for a base layer
	Suite      string
	Components []string // components of the suite that the site uses
	Imported   bool     // the base was not built from packages, so an archive may lack some of them
	Debian     []string // NAME=VERSION of all packages that a node sees
	Python     []string // NAME==VERSION
	Runs       string   // version of the Python for these packages
	Pins       string   // requirements
}

// distribution returns the distribution of the layer's packages.
func (l *Layer) distribution() *distro.Distribution {
	return distro.ForImage(site.Image{Suite: l.Suite})
}

// A need is what the mirror must have for one layer, in addition to the needs of its base.
type need struct {
	layer  *Layer
	debian []Package
	python []Package
}

// needs returns what layers consist of, bases first. What a layer has from its base is part of the
// need of the base.
func needs(layers []*Layer) []need {
	var all []need
	seen := map[string]bool{}
	add := func(l *Layer) {
		if seen[l.Digest] {
			return
		}
		seen[l.Digest] = true
		n := need{layer: l}
		for _, text := range l.Debian {
			if l.Base == nil || !slices.Contains(l.Base.Debian, text) {
				name, version, _ := strings.Cut(text, "=")
				n.debian = append(n.debian, Package{name, version})
			}
		}
		for _, text := range l.Python {
			name, version, _ := strings.Cut(text, "==")
			if p := (Package{pins.Normal(name), version}); !isSeeded(p, l.Debian) {
				n.python = append(n.python, p)
			}
		}
		all = append(all, n)
	}
	for _, l := range layers {
		if l.Base != nil {
			add(l.Base)
		}
	}
	for _, l := range layers {
		add(l)
	}
	return all
}

// isSeeded reports whether a Python package came from a Debian package. python3-venv puts pip and
// setuptools into every virtual environment from python3-pip-whl and python3-setuptools-whl,
// without asking an index.
func isSeeded(p Package, debian []string) bool {
	for _, text := range debian {
		if version, ok := strings.CutPrefix(text, "python3-"+p.Name+"-whl="); ok {
			upstream := strings.FieldsFunc(version, func(c rune) bool { return c == '+' || c == '-' || c == '~' })
			return len(upstream) > 0 && upstream[0] == p.Version
		}
	}
	return false
}

// suites returns the suites of layers, each with the components that are used.
func suites(layers []*Layer) map[string][]string {
	all := map[string][]string{}
	for _, l := range layers {
		if l.Suite == "" {
			continue
		}
		components := append(all[l.Suite], l.Components...)
		if len(l.Components) == 0 {
			components = append(components, l.distribution().Components...)
		}
		slices.Sort(components)
		all[l.Suite] = slices.Compact(components)
	}
	return all
}
