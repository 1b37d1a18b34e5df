package draft

import (
	"io/fs"
	"maps"
	"net/netip"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"orrery/examples"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/pattern"
)

// Examples returns the names of the examples that WriteCopy knows.
func Examples() (names []string) {
	found, _ := fs.Glob(examples.Files, "*/"+sitefile.Name)
	for _, file := range found {
		names = append(names, path.Dir(file))
	}
	return names
}

// WriteCopy writes a copy of an example with a name of its own. Subnets that are taken on this host
// are replaced, wherever the example has addresses of them. It returns the paths of the files.
func WriteCopy(dir, name, example string) (paths []string, err error) {
	if !slices.Contains(Examples(), example) {
		return nil, problem.New(problem.Usage, "there is no example %q", example).
			Try("%s", problem.SuggestOr(example, Examples(), "choose one of "+strings.Join(Examples(), ", ")))
	}
	if name, err = chooseName(dir, name); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	err = fs.WalkDir(examples.Files, example, func(at string, e fs.DirEntry, err error) error {
		if e != nil && e.Name() == "__pycache__" {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || at == example+"/README.md" { // its links lead to the documentation
			return err
		}
		text, err := fs.ReadFile(examples.Files, at)
		texts[strings.TrimPrefix(at, example+"/")] = string(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	texts[sitefile.Name] = strings.Replace(texts[sitefile.Name], `"`+example+`"`, `"`+name+`"`, 1)
	renumber(name, texts)
	files := []host.File{{Path: filepath.Join(dir, sitefile.Name), Content: []byte(texts[sitefile.Name]), Mode: 0o644}}
	delete(texts, sitefile.Name)
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		file := filepath.Join(dir, at)
		if exists(file) {
			return nil, problem.New(problem.Usage, "a file exists already").At(file).Try("use another directory")
		}
		files = append(files, host.File{Path: file, Content: []byte(texts[at]), Mode: 0o644})
	}
	return write(files)
}

// subnetOf24 matches a subnet of 256 addresses. Its group is what all of its addresses begin with.
var subnetOf24 = pattern.New(`"(\d{1,3}\.\d{1,3}\.\d{1,3})\.0/24"`)

// renumber replaces the subnets of a site that are taken.
func renumber(name string, texts map[string]string) {
	taken := takenSubnets()
	var own []netip.Prefix
	for _, found := range subnetOf24().FindAllStringSubmatch(texts[sitefile.Name], -1) {
		if p, err := netip.ParsePrefix(found[1] + ".0/24"); err == nil {
			own = append(own, p)
		}
	}
	for _, p := range own {
		if isFree(p, taken) {
			continue
		}
		fresh := freeSubnet(name, slices.Concat(taken, own))
		own = append(own, fresh)
		from, to := prefixText(p), prefixText(fresh)
		address := regexp.MustCompile(`(^|[^0-9.])` + regexp.QuoteMeta(from))
		for at, text := range texts {
			if utf8.ValidString(text) {
				texts[at] = address.ReplaceAllString(text, "${1}"+to)
			}
		}
	}
}

// prefixText returns what all addresses of a subnet of 256 addresses begin with.
func prefixText(p netip.Prefix) string { return strings.TrimSuffix(p.Addr().String(), "0") }

// chooseName returns the name of a new site: the given one, or that of the directory.
func chooseName(dir, name string) (string, error) {
	ofDir, err := nameFor(dir)
	if err != nil || name == "" {
		return ofDir, err
	}
	return name, validateName(name)
}
