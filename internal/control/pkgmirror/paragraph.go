package pkgmirror

import (
	"strings"

	"orrery/internal/site/distro"
)

// A paragraph is the entry of one package in an archive's index (deb-control(5)). It maps field
// names in lower case to values.
type paragraph map[string]string

// A stanza is a paragraph with its text.
type stanza struct {
	paragraph
	text string
}

// paragraphs parses an index of packages, such as Packages or the output of apt-cache show.
func paragraphs(index string) []stanza {
	var all []stanza
	for p, text := range distro.Paragraphs(index) {
		if p["package"] != "" {
			all = append(all, stanza{p, strings.Trim(text, "\n") + "\n\n"})
		}
	}
	return all
}

func (p paragraph) pkg() Package { return Package{p["package"], p["version"]} }

// parseOffers returns the packages in an archive's index that fit an architecture. Packages without a
// file are skipped, because they are only installed and not offered.
func parseOffers(index, arch string) map[Package]paragraph {
	all := map[Package]paragraph{}
	for _, s := range paragraphs(index) {
		if s.paragraph["filename"] != "" && (s.paragraph["architecture"] == arch || s.paragraph["architecture"] == "all") {
			all[s.pkg()] = s.paragraph
		}
	}
	return all
}

// An override is the priority and section that an archive assigns to a package. They may differ
// from those in the package. mmdebstrap installs every package that an archive calls required.
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
