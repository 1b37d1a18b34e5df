package sitefile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/strict"
)

// hostsOf separates hosts from nodes. A section is a host if the host_server of another section
// names it.
func (m *iniImport) hostsOf() {
	named := map[string]bool{}
	hosts, sections := map[string]*iniNode{}, map[string]*iniNode{} // by bare name, the first section of each
	for _, n := range slices.Backward(m.sections) {
		sections[bareName(n.section)] = n
	}
	for _, n := range m.sections {
		server := n.keys["host_server"]
		if server == "" || named[server] {
			continue
		}
		named[server] = true
		host := m.nodes[server]
		for _, by := range []map[string]*iniNode{hosts, sections} {
			if host == nil {
				host = by[bareName(server)]
			}
		}
		if host == nil {
			host = &iniNode{section: server, name: ValidName(ShortName(server), m.taken), keys: map[string]string{}}
			m.ToDo = append(m.ToDo, m.at(n.section)+fmt.Sprintf("host_server %s has no section: check its address",
				oneLine(server)))
		}
		if !host.isHost {
			host.isHost = true
			m.hosts = append(m.hosts, host)
			if bare := bareName(host.section); hosts[bare] == nil {
				hosts[bare] = host
			}
		}
		m.nodes[server] = host
	}
}

// idsOf extracts the ids of nodes from their ctid, which is a release number followed by the id. It
// assigns free ids to the other nodes.
func (m *iniImport) idsOf() {
	taken, released := map[int]*iniNode{}, map[int]bool{}
	var without []*iniNode
	for _, n := range m.sections {
		if n.isHost {
			continue
		}
		ctid, err := strconv.Atoi(n.keys["ctid"])
		id, release := ctid%1000, ctid/1000
		switch {
		case n.keys["ctid"] == "":
			without = append(without, n)
			continue
		case err != nil || id < 1 || release > 9999:
			m.noteLostKey(n, "ctid", "not an id (a release number and three digits); the node gets a free one")
			without = append(without, n)
			continue
		case taken[id] != nil:
			m.noteLostKey(n, "ctid", fmt.Sprintf("[%s] in line %d already has the id %d; the node gets a free one",
				oneLine(taken[id].section), m.lineOf(taken[id], "ctid"), id))
			without = append(without, n)
			continue
		}
		taken[id], n.id = n, id
		if release > 0 && !released[release] {
			released[release], m.releases = true, append(m.releases, release)
		}
	}
	slices.Sort(m.releases)
	next := 1
	for _, n := range without {
		for ; taken[next] != nil; next++ {
		}
		taken[next], n.id, n.note = n, next, "not in the database: the first free one"
		if n.keys["ctid"] != "" {
			n.note = "the first free one"
		}
	}
}

// rolesUsed returns all roles, sorted, and the roles of each section.
func (m *iniImport) rolesUsed() (all []string, of map[*iniNode][]string) {
	return m.named("roles", "role")
}

func (m *iniImport) groupsUsed() (all []string, of map[*iniNode][]string) {
	return m.named("groups", "group")
}

func (m *iniImport) named(keys ...string) (all []string, of map[*iniNode][]string) {
	of = map[*iniNode][]string{}
	known := map[string]bool{}
	for _, n := range m.sections {
		if n.isHost {
			continue
		}
		own := map[string]bool{}
		for _, key := range keys {
			for _, word := range words(n.keys[key]) {
				name := ValidName(word, Names{})
				if !own[name] {
					own[name], of[n] = true, append(of[n], name)
				}
				if !known[name] {
					known[name], all = true, append(all, name)
				}
			}
		}
	}
	slices.Sort(all)
	return all, of
}

// sizeOf converts an amount of memory. Without a unit it is in MiB.
func sizeOf(text string) (string, bool) {
	digits := strings.TrimRight(strings.ToUpper(strings.TrimSpace(text)), "KMGTIB ")
	unit := strings.TrimSpace(strings.ToUpper(strings.TrimSpace(text))[len(digits):])
	amount, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return "", false
	}
	letter := "M"
	if unit != "" {
		letter = unit[:1]
	}
	written := strconv.FormatFloat(amount, 'f', -1, 64) + letter + "iB"
	return written, new(strict.Size).Parse(written) == nil
}

// parseBool parses a boolean as Python's ConfigParser does.
func parseBool(text string) (yes, ok bool) {
	switch strings.ToLower(text) {
	case "1", "yes", "true", "on":
		return true, true
	case "0", "no", "false", "off":
		return false, true
	}
	return false, false
}

// suites maps parts of container template names to Debian suites.
var suites = []struct{ part, suite string }{
	{"debian-13", "trixie"}, {"debian-12", "bookworm"}, {"debian-11", "bullseye"}, {"debian-10", "buster"},
	{"debian-9", "stretch"}, {"debian-8", "jessie"}, {"debian-7", "wheezy"}, {"debian-6", "squeeze"},
}

const defaultSuite = "bookworm"

func suiteOf(template string) (suite string, known bool) {
	for _, s := range suites {
		if name := strings.ToLower(template); strings.Contains(name, s.part) || strings.Contains(name, s.suite) {
			return s.suite, true
		}
	}
	return defaultSuite, false
}

// templateOf returns the container template of a section, or "".
func templateOf(n *iniNode) string {
	for _, key := range []string{"os/template", "ostemplate", "template", "os"} {
		if n.keys[key] != "" {
			return n.keys[key]
		}
	}
	return ""
}

// isEnoughMemory reports whether a node can start with a memory size.
func isEnoughMemory(text string) bool {
	var s strict.Size
	return s.Parse(text) == nil && (s == 0 || s >= 16<<20)
}
