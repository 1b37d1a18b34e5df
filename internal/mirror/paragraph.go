package mirror

import (
	"strings"
)

// A paragraph is what an index of an archive says of one package (deb-control(5)): fields that take one line, by name.
type paragraph map[string]string

// A stanza is a paragraph with its text.
type stanza struct {
	paragraph
	text string
}

// paragraphs reads an index of packages, such as Packages or what apt-cache show prints.
func paragraphs(index string) []stanza {
	var all []stanza
	for _, text := range strings.Split(index, "\n\n") {
		p := paragraph{}
		for line := range strings.Lines(text) {
			key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			if ok && !strings.HasPrefix(key, " ") && !strings.HasPrefix(key, "\t") {
				p[key] = strings.TrimSpace(value)
			}
		}
		if p["Package"] != "" {
			all = append(all, stanza{p, strings.Trim(text, "\n") + "\n\n"})
		}
	}
	return all
}

func (p paragraph) is() Package { return Package{p["Package"], p["Version"]} }

// offers gives, of what an archive says, that of packages which fit an architecture. What has no file is not offered but installed.
func offers(index, arch string) map[Package]paragraph {
	all := map[Package]paragraph{}
	for _, s := range paragraphs(index) {
		if s.paragraph["Filename"] != "" && (s.paragraph["Architecture"] == arch || s.paragraph["Architecture"] == "all") {
			all[s.is()] = s.paragraph
		}
	}
	return all
}

// An override is the importance that an archive gives a package, which may be another than the package says: mmdebstrap takes what an
// archive calls required into every system.
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
