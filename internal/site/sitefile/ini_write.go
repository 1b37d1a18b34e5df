package sitefile

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// write returns the site file.
func (m *iniImport) write() []byte {
	var b bytes.Buffer
	out := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	out("# Made by orrery import from %s. Please read it: comments tell what was guessed or has no place here.\n", oneLine(path.Base(m.name)))
	out("\n[site]\nname = %s\n", tomlString(m.Site))
	m.production(out)
	for _, h := range m.hosts {
		m.writeHost(out, h)
	}
	for _, n := range m.networks {
		out("\n[network.%s]\n", n.name)
		out("subnet  = %s", tomlString(n.subnet.String()))
		if n.guessed {
			out("  # no netmask in the database: guessed")
		}
		out("\n")
		if n.gateway.IsValid() {
			out("gateway = %s\nnat     = true  # guessed\n", tomlString(n.gateway.String()))
		}
	}
	images := m.writeImages(out)
	roles, rolesOf := m.rolesUsed()
	if len(roles) > 0 {
		out("\n# Roles to write: %s\n", strings.Join(roles, ", "))
	}
	for _, n := range m.sections {
		if !n.isHost {
			m.writeNode(out, n, images, rolesOf[n])
		}
	}
	groups, groupsOf := m.groupsUsed()
	nodes := map[string][]string{}
	for _, n := range m.sections {
		for _, group := range groupsOf[n] {
			nodes[group] = append(nodes[group], n.name)
		}
	}
	for _, group := range groups {
		out("\n[group.%s]\nnodes = %s\n", group, tomlList(nodes[group]))
	}
	for _, r := range m.releases {
		out("\n[release.%d]\n", r)
	}
	return b.Bytes()
}

type printer = func(format string, args ...any)

func (m *iniImport) production(out printer) {
	yes, no := 0, 0
	for _, n := range m.sections {
		value, said := n.keys["production"]
		is, ok := truth(value)
		switch {
		case said && !ok:
			m.lose(n, "production", "neither yes nor no")
		case is:
			yes++
		case said:
			no++
		}
	}
	if yes > 0 {
		out("production = true  # destructive verbs ask for the site's name\n")
	}
	if yes > 0 && no > 0 {
		out("# Some sections of the database are not of production: a site is or is not. Make two of it if need be.\n")
		m.Lost = append(m.Lost, fmt.Sprintf("%s: %d sections are of production and %d are not: the site is", m.name, yes, no))
	}
}

func (m *iniImport) writeHost(out printer, h *iniNode) {
	out("\n[host.%s]\n", h.name)
	address := h.section
	for _, key := range h.order {
		if _, isIP := suffixOf(key, "ip"); isIP && len(words(h.keys[key])) > 0 {
			address = words(h.keys[key])[0]
			break
		}
	}
	address, _, _ = strings.Cut(address, "/")
	if !hostAddress().MatchString(address) {
		m.tell(h.section, "%q is not an address", oneLine(address))
		address = h.name
	}
	if m.hostAddresses.has(address) {
		m.tell(h.section, "another host has the address %s", address)
		address += "-other"
	}
	address = m.hostAddresses.add(address)
	out("address = %s  # or \"local\"\n", tomlString("root@"+address))
	for _, key := range h.order {
		switch {
		case isPlace(key) || key == "production" || key == "host_server" || m.lines[h.section+"\x00"+key] == 0:
			// has been seen to, or is said for all nodes
		case key == "cpus" && m.cpus(out, h, key), key == "ram" && m.size(out, h, key, "memory"):
		default:
			m.lose(h, key, "no place for it in a host")
		}
	}
	m.comments(out, h)
}

func (m *iniImport) writeImages(out printer) map[string]string {
	images := map[string]string{}
	taken := names{}
	for _, n := range m.sections {
		template := templateOf(n)
		if _, done := images[template]; done || n.isHost {
			continue
		}
		name := "debian"
		if template != "" {
			name, _, _ = strings.Cut(path.Base(template), "_")
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".tar.gz"), "-amd64"), "-x86_64")
		}
		images[template] = legalName(name, taken)
		suite, known := suiteOf(template)
		out("\n[image.%s]\nsuite = %s", images[template], tomlString(suite))
		switch {
		case template != "" && !known:
			out("  # the database has %s", oneLine(template))
			m.tell(n.section, "template %s is unknown here: its nodes start from %s", oneLine(template), suite)
		case template != "":
			out("  # %s", oneLine(template))
		}
		out("\n")
	}
	return images
}

func (m *iniImport) writeNode(out printer, n *iniNode, images map[string]string, roles []string) {
	out("\n[node.%s]", n.name)
	if n.name != n.section {
		out("  # [%s]", oneLine(n.section))
	}
	out("\nid     = %d", n.id)
	if n.note != "" {
		out("  # %s", n.note)
	}
	out("\nimage  = %s\nroles  = %s\n", tomlString(images[templateOf(n)]), tomlList(roles))
	vars := map[string]string{}
	for _, key := range n.order {
		m.writeKey(out, n, key, vars)
	}
	for _, nic := range n.nics {
		out("net.%s = %s\n", nic.network.name, tomlString(nic.address.String()))
	}
	if len(n.nics) == 0 {
		out("net    = {}  # no address in the database; without this line it would get one on every network\n")
	}
	for _, key := range slices.Sorted(maps.Keys(vars)) {
		out("vars.%s = %s\n", key, tomlString(vars[key]))
	}
	m.comments(out, n)
}
