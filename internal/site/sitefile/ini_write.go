package sitefile

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// An iniWriter writes the site file that corresponds to a database.
type iniWriter struct {
	*iniImport
	text      bytes.Buffer
	images    map[string]string // image names, by template
	addresses Names             // of hosts
}

func (w *iniWriter) printf(format string, args ...any) { fmt.Fprintf(&w.text, format, args...) }

// write returns the site file.
func (w *iniWriter) write() []byte {
	w.printf("# Written by orrery import from %s. Please read it: comments mark what was guessed or left out.\n",
		oneLine(path.Base(w.name)))
	w.printf("\n[site]\nname = %s\n", Quote(w.Site))
	w.production()
	for _, h := range w.hosts {
		w.writeHost(h)
	}
	for _, n := range w.networks {
		w.printf("\n[network.%s]\n", n.name)
		w.printf("subnet  = %s", Quote(n.subnet.String()))
		if n.guessed {
			w.printf("  # no netmask in the database: guessed")
		}
		w.printf("\n")
		if n.gateway.IsValid() {
			w.printf("gateway = %s\nnat     = true  # guessed\n", Quote(n.gateway.String()))
		}
	}
	w.writeImages()
	roles, rolesOf := w.rolesUsed()
	if len(roles) > 0 {
		w.printf("\n# Roles to write: %s\n", strings.Join(roles, ", "))
	}
	for _, n := range w.sections {
		if !n.isHost {
			w.writeNode(n, rolesOf[n])
		}
	}
	groups, groupsOf := w.groupsUsed()
	nodes := map[string][]string{}
	for _, n := range w.sections {
		for _, group := range groupsOf[n] {
			nodes[group] = append(nodes[group], n.name)
		}
	}
	for _, group := range groups {
		w.printf("\n[group.%s]\nnodes = %s\n", group, QuoteList(nodes[group]))
	}
	for _, r := range w.releases {
		w.printf("\n[release.%d]\n", r)
	}
	return w.text.Bytes()
}

func (w *iniWriter) production() {
	yes, no := 0, 0
	for _, n := range w.sections {
		value, said := n.keys["production"]
		production, ok := parseBool(value)
		switch {
		case said && !ok:
			w.noteLostKey(n, "production", "neither yes nor no")
		case production:
			yes++
		case said:
			no++
		}
	}
	if yes > 0 {
		w.printf("production = true  # destructive verbs ask for the site's name\n")
	}
	if yes > 0 && no > 0 {
		w.printf("# Some sections of the database are not in production, but a site is in production as a whole. Split it if necessary.\n")
		w.Lost = append(w.Lost, fmt.Sprintf("%s: %d sections are production and %d are not: the site is production",
			w.name, yes, no))
	}
}

func (w *iniWriter) writeHost(h *iniNode) {
	w.printf("\n[host.%s]\n", h.name)
	address := h.section
	for _, key := range h.order {
		if _, isIP := suffixOf(key, "ip"); isIP && len(words(h.keys[key])) > 0 {
			address = words(h.keys[key])[0]
			break
		}
	}
	address, _, _ = strings.Cut(address, "/")
	if !hostAddress().MatchString(address) {
		w.noteLoss(h.section, "%q is not an address", oneLine(address))
		address = h.name
	}
	if w.addresses.has(address) {
		w.noteLoss(h.section, "another host has the address %s", address)
		address += "-other"
	}
	address = w.addresses.add(address)
	w.printf("address = %s  # or \"local\"\n", Quote("root@"+address))
	for _, key := range h.order {
		switch {
		case isAddressKey(key) || key == "production" || key == "host_server" || w.lines[h.section+"\x00"+key] == 0:
			// already converted, or from [DEFAULT]
		case key == "cpus" && w.cpus(h, key), key == "ram" && w.size(h, key, "memory"):
		default:
			w.noteLostKey(h, key, "no matching key for a host")
		}
	}
	w.comments(h)
}

func (w *iniWriter) writeImages() {
	taken := Names{}
	for _, n := range w.sections {
		template := templateOf(n)
		if _, done := w.images[template]; done || n.isHost {
			continue
		}
		name := "debian"
		if template != "" {
			name, _, _ = strings.Cut(path.Base(template), "_")
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".tar.gz"), "-amd64"), "-x86_64")
		}
		w.images[template] = ValidName(name, taken)
		suite, known := suiteOf(template)
		w.printf("\n[image.%s]\nsuite = %s", w.images[template], Quote(suite))
		switch {
		case template != "" && !known:
			w.printf("  # the database has %s", oneLine(template))
			w.noteLoss(n.section, "template %s is unknown: its nodes use %s", oneLine(template), suite)
		case template != "":
			w.printf("  # %s", oneLine(template))
		}
		w.printf("\n")
	}
}

func (w *iniWriter) writeNode(n *iniNode, roles []string) {
	w.printf("\n[node.%s]", n.name)
	if n.name != n.section {
		w.printf("  # [%s]", oneLine(n.section))
	}
	w.printf("\nid     = %d", n.id)
	if n.note != "" {
		w.printf("  # %s", n.note)
	}
	w.printf("\nimage  = %s\nroles  = %s\n", Quote(w.images[templateOf(n)]), QuoteList(roles))
	vars := map[string]string{}
	for _, key := range n.order {
		w.writeKey(n, key, vars)
	}
	for _, nic := range n.nics {
		w.printf("net.%s = %s\n", nic.network.name, Quote(nic.address.String()))
	}
	if len(n.nics) == 0 {
		w.printf("net    = {}  # no address in the database; without this line the node gets one on every network\n")
	}
	for _, key := range slices.Sorted(maps.Keys(vars)) {
		w.printf("vars.%s = %s\n", key, Quote(vars[key]))
	}
	w.comments(n)
}
