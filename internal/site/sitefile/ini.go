package sitefile

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/ini.v1"

	"orrery/internal/problem"
	"orrery/internal/visible"
)

// ImportINI reads a host database in the INI style of KAT-7, where a section describes the machine it is named
// after, and gives the site file that says the same. What it could not place, and what is left to do, it tells in
// lines that begin with the name and line of the database.
func ImportINI(r io.Reader, name string) (i *Imported, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, problem.New(problem.Failed, "cannot be read").At(name).Because(err)
	}
	if len(text) > maxFile {
		return nil, mistake("more than %d MiB are no host database", maxFile>>20).At(name)
	}
	if text, err = visible.Unmarked(text); err != nil {
		return nil, mistake("this is not INI: %v", err).At(name + ":1")
	}
	file, err := ini.LoadSources(ini.LoadOptions{
		InsensitiveKeys: true, AllowBooleanKeys: true, SpaceBeforeInlineComment: true, AllowPythonMultilineValues: true,
		ChildSectionDelimiter: "\x00", // a dot in a section's name is one of a host name
	}, text)
	if err != nil {
		return nil, mistake("this is not INI").At(name).Because(err)
	}
	m := &iniImport{name: name, lines: iniLines(string(text)), nodes: map[string]*iniNode{}, taken: map[string]bool{}, addresses: map[string]bool{}}
	if p := m.read(file); p != nil {
		return nil, p
	}
	m.hostsOf()
	m.networksOf()
	m.idsOf()
	m.Content = m.write()
	m.roleNotes()
	return &m.Imported, nil
}

// Imported is what became of a database.
type Imported struct {
	Content []byte   // the site file
	Lost    []string // what the database says and the site file does not
	ToDo    []string // what the database leaves open
	Roles   []string // roles to write
}

// An iniImport is what has been found out about a database.
type iniImport struct {
	Imported
	name     string
	lines    map[string]int
	sections []*iniNode          // nodes and hosts, as written
	nodes    map[string]*iniNode // by section
	hosts    []*iniNode
	networks []*iniNetwork
	releases []int
	taken    map[string]bool // names of nodes and hosts

	addresses map[string]bool // of hosts
}

// An iniNode is a section.
type iniNode struct {
	section string
	name    string            // legal
	keys    map[string]string // as written, but in lower case
	order   []string
	nics    []iniNIC
	id      int
	note    string // about the id
	lost    []string
	isHost  bool
}

var (
	iniSection  = regexp.MustCompile(`^\s*\[([^\]]*)\]`)
	hostAddress = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	iniKey      = regexp.MustCompile(`^([^\s=:#;\[][^=:]*?)\s*([=:]|$)`)
)

// iniLines tells where each key stands, which the library does not: "section\x00key" → line.
func iniLines(text string) map[string]int {
	lines := map[string]int{}
	section, number := "", 0
	for line := range strings.Lines(text) {
		number++
		if m := iniSection.FindStringSubmatch(line); m != nil {
			section = strings.TrimSpace(m[1])
			lines[section+"\x00"] = number
		} else if m := iniKey.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			lines[section+"\x00"+strings.ToLower(m[1])] = number
		}
	}
	return lines
}

func (m *iniImport) read(file *ini.File) *problem.Problem {
	defaults := file.Section(ini.DefaultSection)
	for _, s := range file.Sections() {
		if s.Name() == ini.DefaultSection {
			continue
		}
		n := &iniNode{section: s.Name(), keys: map[string]string{}}
		n.name = legalName(shortName(s.Name()), m.taken)
		for _, from := range []*ini.Section{s, defaults} { // as Python's ConfigParser: what [DEFAULT] says holds for all
			for _, k := range from.Keys() {
				if _, said := n.keys[k.Name()]; !said {
					value, ok := iniValue(from, defaults, k)
					if !ok {
						return mistake("%s of [%s] has no end, or one of more than %d bytes: values name one another", k.Name(), s.Name(), maxValue).At(m.name).
							Try("write it out")
					}
					n.keys[k.Name()] = strings.TrimSpace(value)
					n.order = append(n.order, k.Name())
				}
			}
		}
		m.sections = append(m.sections, n)
		m.nodes[n.section] = n
	}
	return nil
}

// shortName gives a host's name without its domain; an address is no name with a domain.
func shortName(name string) string {
	short, _, _ := strings.Cut(name, ".")
	if strings.Trim(short, "0123456789") == "" {
		return name
	}
	return short
}

// legalName gives the nearest legal name that is not yet taken.
func legalName(name string, taken map[string]bool) string {
	legal := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	if legal == "" || strings.Trim(legal, "0123456789") == "" || slices.Contains([]string{"all", "and", "auto", "localhost", "not", "or"}, legal) {
		legal = "n" + legal
	}
	legal = strings.Trim(legal[:min(len(legal), 56)], "-")
	unique := legal
	for i := 2; taken[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", legal, i)
	}
	taken[unique] = true
	return unique
}

// bareName is a name as legalName gives it, taken or not.
func bareName(name string) string { return legalName(shortName(name), map[string]bool{}) }

// lose tells that a key has no place in the site file.
func (m *iniImport) lose(n *iniNode, key, why string) {
	line := m.lineOf(n, key)
	text := fmt.Sprintf("%s = %s", key, oneLine(n.keys[key]))
	m.Lost = append(m.Lost, fmt.Sprintf("%s:%d: [%s] %s: %s", m.name, line, oneLine(n.section), text, why))
	n.lost = append(n.lost, fmt.Sprintf("%s (line %d: %s)", text, line, why))
}

// lineOf gives the line that says a key of a section.
func (m *iniImport) lineOf(n *iniNode, key string) int {
	if line := m.lines[n.section+"\x00"+key]; line != 0 {
		return line
	}
	return m.lines["DEFAULT\x00"+key]
}

// tell tells what a section says that the site file does not, and is no single key.
func (m *iniImport) tell(section, format string, args ...any) {
	m.Lost = append(m.Lost, m.at(section)+fmt.Sprintf(format, args...))
}

func (m *iniImport) at(section string) string {
	return fmt.Sprintf("%s:%d: [%s] ", m.name, m.lines[section+"\x00"], oneLine(section))
}

// roleNotes tells which roles the user has to write.
func (m *iniImport) roleNotes() {
	roles, _ := m.rolesUsed()
	for _, role := range roles {
		m.Roles = append(m.Roles, role)
		m.ToDo = append(m.ToDo, fmt.Sprintf("%s: role %s: write roles/%s/role.toml", m.name, role, role))
	}
}

// words cuts a value that may be a list in any of the usual ways.
func words(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(", \t\r\n;[]'\"", r) })
}

// oneLine makes text fit for a comment or a message.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
