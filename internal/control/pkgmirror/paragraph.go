package pkgmirror

import (
	"strings"

	"orrery/internal/site/distro"
)

// A paragraph is what an index of an archive says of one package (deb-control(5)): fields, by name
// in lower case.
type paragraph map[string]string

// A stanza is a paragraph with its text.
type stanza struct {
	paragraph
	text string
}

// paragraphs reads an index of packages, such as Packages or what apt-cache show prints.
func paragraphs(index string) []stanza {
	var all []stanza
	for p, text := range distro.Paragraphs(index) {
		if p["package"] != "" {
			all = append(all, stanza{p, strings.Trim(text, "\n") + "\n\n"})
		}
	}
	return all
}

func (p paragraph) is() Package { return Package{p["package"], p["version"]} }

// offers returns those packages of an archive's index that fit an architecture. A package without a file is
// not offered but installed.
func offers(index, arch string) map[Package]paragraph {
	all := map[Package]paragraph{}
	for _, s := range paragraphs(index) {
		if s.paragraph["filename"] != "" && (s.paragraph["architecture"] == arch || s.paragraph["architecture"] == "all") {
			all[s.is()] = s.paragraph
		}
	}
	return all
}

// An override is the importance that an archive gives a package, which may be another than the
// package says: mmdebstrap takes what an archive calls required into every system.
type override struct{ priority, section string }

func readOverrides(text string) map[string]override {
	all := map[string]override{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 {
			all[f[0]] = override{f[1], f[2]}
		}
	}
	return all
}
