package sitefile

import (
	"fmt"
	"io"
	"net/netip"
	"path"
	"slices"
	"strings"

	"gopkg.in/ini.v1"

	"orrery/internal/problem"
	"orrery/internal/text/pattern"
	"orrery/internal/text/sanitize"
)

// ImportINI reads an INI host database in the style of KAT-7 and returns the equivalent site file.
// Each section describes the machine that it is named after. The site is called siteName, or if
// that is "", after the database. The result also lists what could not be converted and what the
// user still has to do. Each item begins with the name and line of the database.
func ImportINI(r io.Reader, name, siteName string) (i *Imported, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, problem.New(problem.Failed, "cannot be read").At(name).Because(err)
	}
	if len(text) > maxFile {
		return nil, mistake("larger than %d MiB, too large for a host database", maxFile>>20).At(name)
	}
	if text, err = sanitize.StripBOM(text); err != nil {
		return nil, mistake("this is not INI: %v", err).At(name + ":1")
	}
	if p := headed(string(text), name); p != nil {
		return nil, p
	}
	file, err := ini.LoadSources(ini.LoadOptions{
		AllowNonUniqueSections: true, // the default compares each section with all others
		InsensitiveKeys:        true, AllowBooleanKeys: true, SpaceBeforeInlineComment: true,
		AllowPythonMultilineValues: true,
		ChildSectionDelimiter:      "\x00", // a dot in a section's name is part of a host name
	}, text)
	if err != nil {
		return nil, mistake("this is not INI").At(name).Because(err)
	}
	m := &iniImport{
		name: name, lines: iniLines(string(text)), nodes: map[string]*iniNode{}, taken: Names{},
		bySubnet: map[netip.Prefix]*iniNetwork{},
	}
	if p := m.read(file); p != nil {
		return nil, p
	}
	if siteName == "" {
		siteName, _, _ = strings.Cut(path.Base(name), ".")
	}
	m.Site = ValidName(siteName, Names{})
	m.hostsOf()
	m.networksOf()
	m.idsOf()
	w := iniWriter{iniImport: m, images: map[string]string{}, addresses: Names{}}
	m.Content = w.write()
	m.roleNotes()
	return &m.Imported, nil
}

// Imported is the result of ImportINI.
type Imported struct {
	Site    string   // name of the site
	Content []byte   // the site file
	Lost    []string // settings of the database that the site file lacks
	ToDo    []string // what the database does not specify
	Roles   []string // roles that the user has to write
}

// An iniImport is the state of an import.
type iniImport struct {
	Imported
	name     string
	lines    map[string]int
	sections []*iniNode          // nodes and hosts, in the order of the database
	nodes    map[string]*iniNode // by section name
	hosts    []*iniNode
	networks []*iniNetwork
	releases []int
	taken    Names // names of nodes and hosts
	bySubnet map[netip.Prefix]*iniNetwork
	lengths  [33]bool // prefix lengths in bySubnet
}

// Limits of a database. The library takes quadratic time for a long section. The values of
// [DEFAULT] are added to every section.
const (
	maxSectionLines   = 1000
	maxDatabaseValues = 1 << 20
)

// headed rejects a section that is too long or has the same name as another. Such a section is
// probably about another machine, or two people have written about the same one. headed also
// rejects a duplicate key in a section, because only one of the values can be correct.
func headed(text, name string) *problem.Problem {
	section, lines, number := ini.DefaultSection, 0, 0
	first, keys := map[string]int{}, map[string]int{}
	for line := range strings.Lines(text) {
		number++
		key, isKey := iniKeyOf(line)
		if isKey && keys[key] != 0 {
			return mistake("[%s] %s is set twice, first in line %d", oneLine(section), oneLine(key), keys[key]).
				At(fmt.Sprintf("%s:%d", name, number)).Try("remove the wrong one")
		}
		if isKey {
			keys[key] = number
		}
		if m := iniSection().FindStringSubmatch(line); m != nil && line[0] == '[' {
			section, lines = strings.TrimSpace(m[1]), 0
			if first[section] != 0 {
				return mistake("section [%s] exists twice, first in line %d", oneLine(section), first[section]).
					At(fmt.Sprintf("%s:%d", name, number)).
					Try("write one section for each machine and name it after the machine")
			}
			first[section], keys = number, map[string]int{}
		}
		if lines++; lines > maxSectionLines {
			return mistake("[%s] has more than %d lines", oneLine(section), maxSectionLines).At(name).Try("split it")
		}
	}
	return nil
}

// An iniNode is a section of the database.
type iniNode struct {
	section string
	name    string            // a legal node name
	keys    map[string]string // values as written, by the key in lower case
	order   []string
	places  map[[2]string]string // cache of addressKey
	nics    []iniNIC
	id      int
	note    string // about the id
	lost    []string
	isHost  bool
}

var (
	iniSection  = pattern.New(`^\s*\[([^\]]*)\]`)
	hostAddress = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	iniKey      = pattern.New(`^([^\s=:#;\[][^=:]*?)\s*([=:]|$)`)
)

// iniLines returns the line of each key, as "section\x00key" → line, because the library does not
// record it.
func iniLines(text string) map[string]int {
	lines := map[string]int{}
	section, number := "", 0
	for line := range strings.Lines(text) {
		number++
		if m := iniSection().FindStringSubmatch(line); m != nil {
			section = strings.TrimSpace(m[1])
			lines[section+"\x00"] = number
		} else if key, ok := iniKeyOf(line); ok {
			lines[section+"\x00"+key] = number
		}
	}
	return lines
}

// iniKeyOf returns the key on a line in lower case, or false if the line has none.
func iniKeyOf(line string) (key string, ok bool) {
	m := iniKey().FindStringSubmatch(strings.TrimRight(line, "\r\n"))
	if m == nil {
		return "", false
	}
	return strings.ToLower(m[1]), true
}

func (m *iniImport) read(file *ini.File) *problem.Problem {
	defaults := file.Section(ini.DefaultSection) // the part before all sections
	for _, s := range file.Sections() {
		if s.Name() != ini.DefaultSection || s == defaults {
			continue
		}
		for _, k := range s.Keys() {
			if _, err := defaults.NewKey(k.Name(), k.Value()); err != nil {
				return mistake("[%s]: %s", s.Name(), oneLine(k.Name())).At(m.name).Because(err)
			}
		}
	}
	values := 0
	for _, s := range file.Sections() {
		if s.Name() == ini.DefaultSection {
			continue
		}
		if values += len(s.Keys()) + len(defaults.Keys()); values > maxDatabaseValues {
			return mistake("more than %d values, too many for a host database", maxDatabaseValues).At(m.name)
		}
		n := &iniNode{section: s.Name(), keys: map[string]string{}}
		n.name = ValidName(ShortName(s.Name()), m.taken)
		// as in Python's ConfigParser, [DEFAULT] applies to all sections
		for _, from := range []*ini.Section{s, defaults} {
			for _, k := range from.Keys() {
				if _, said := n.keys[k.Name()]; !said {
					value, ok := iniValue(from, defaults, k)
					if !ok {
						return mistake("%s of [%s] refers to itself, or is longer than %d bytes", k.Name(),
							s.Name(), maxValue).At(m.name).
							Try("write the value in full")
					}
					n.keys[k.Name()] = strings.TrimSpace(value)
					n.order = append(n.order, k.Name())
				}
			}
		}
		if p := m.masks(n); p != nil {
			return p
		}
		m.sections = append(m.sections, n)
		m.nodes[n.section] = n
	}
	return nil
}

// ShortName returns a host name without its domain. An IP address stays complete.
func ShortName(name string) string {
	short, _, _ := strings.Cut(name, ".")
	if strings.Trim(short, "0123456789") == "" {
		return name
	}
	return short
}

// ValidName returns the nearest legal name that is not taken, and takes it.
func ValidName(name string, taken Names) string {
	legal := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	if legal == "" || strings.Trim(legal, "0123456789") == "" ||
		slices.Contains([]string{"all", "and", "auto", "localhost", "not", "or"}, legal) {
		legal = "n" + legal
	}
	legal = strings.Trim(legal[:min(len(legal), 56)], "-")
	return taken.add(legal)
}

// Names are the names in use, each with the suffix to try for its next duplicate.
type Names map[string]int

// add adds a name and returns it. If the name is taken, add appends the first free suffix.
func (t Names) add(name string) string {
	unique := name
	for t.has(unique) {
		unique = fmt.Sprintf("%s-%d", name, t[name])
		t[name]++
	}
	t[unique] = 2
	return unique
}

func (t Names) has(name string) bool { return t[name] != 0 }

// bareName returns the result of ValidName without regard to names in use.
func bareName(name string) string { return ValidName(ShortName(name), Names{}) }

// noteLostKey records that the site file has no place for a key.
func (m *iniImport) noteLostKey(n *iniNode, key, why string) {
	line := m.lineOf(n, key)
	text := fmt.Sprintf("%s = %s", key, oneLine(n.keys[key]))
	m.Lost = append(m.Lost, fmt.Sprintf("%s:%d: [%s] %s: %s", m.name, line, oneLine(n.section), text, why))
	n.lost = append(n.lost, fmt.Sprintf("%s (line %d: %s)", text, line, why))
}

// lineOf returns the line with a key of a section.
func (m *iniImport) lineOf(n *iniNode, key string) int {
	if line := m.lines[n.section+"\x00"+key]; line != 0 {
		return line
	}
	return m.lines["DEFAULT\x00"+key]
}

// noteLoss records a loss that concerns a section and not a single key.
func (m *iniImport) noteLoss(section, format string, args ...any) {
	m.Lost = append(m.Lost, m.at(section)+fmt.Sprintf(format, args...))
}

func (m *iniImport) at(section string) string {
	return fmt.Sprintf("%s:%d: [%s] ", m.name, m.lines[section+"\x00"], oneLine(section))
}

// roleNotes records which roles the user has to write.
func (m *iniImport) roleNotes() {
	m.Roles, _ = m.rolesUsed()
	for _, role := range m.Roles {
		m.ToDo = append(m.ToDo, fmt.Sprintf("%s: role %s: write roles/%s/role.toml", m.name, role, role))
	}
}

// words splits a value that may be a list with any usual separator.
func words(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(", \t\r\n;[]'\"", r) })
}

// oneLine makes text safe for a comment or message on one line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
