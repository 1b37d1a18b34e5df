package draft

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/pattern"
	"orrery/internal/text/sanitize"
)

const maxContainers = 1000

// A container is the configuration of a container of Proxmox VE (pct.conf(5)).
type container struct {
	file    string
	id      int
	keys    []entry
	archive string // the file name of its vzdump archive, or ""
}

// An entry is a line of a configuration.
type entry struct {
	key, value string
	line       int
}

// options returns the options of a value such as "local:8,size=4G": the first one without a name as "".
func (e entry) options() map[string]string {
	all := map[string]string{}
	for i, part := range strings.Split(e.value, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok && i == 0 {
			name, value = "", part
		}
		all[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return all
}

// ImportProxmox writes a site directory from configurations of containers (/etc/pve/lxc/101.conf) and
// from vzdump archives of them, which are named and not read. It returns the paths of its files.
func ImportProxmox(dir, name string, files []string) (made *sitefile.Imported, paths []string, err error) {
	if name, err = chooseName(dir, name); err != nil {
		return nil, nil, err
	}
	all, err := readContainers(files)
	if err != nil {
		return nil, nil, err
	}
	p := &proxmoxImport{dir: dir, networks: map[string]*bridgedNetwork{}, named: sitefile.Names{}, taken: sitefile.Names{}}
	p.Site = name
	written := p.convert(all)
	paths, err = write(written)
	return &p.Imported, paths, err
}

// archiveName matches the name of a backup of a container.
var archiveName = pattern.New(`^vzdump-lxc-([0-9]+)-.*\.tar(\.(zst|gz|lzo))?$`)

func readContainers(files []string) ([]*container, error) {
	var all []*container
	archives := map[int]string{}
	for _, file := range files {
		if m := archiveName().FindStringSubmatch(filepath.Base(file)); m != nil {
			id, _ := strconv.Atoi(m[1])
			archives[id] = file
			continue
		}
		c, err := readContainer(file)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o *container) bool { return o.id == c.id }) {
			return nil, problem.New(problem.Usage, "container %d is given twice", c.id).At(file)
		}
		if all = append(all, c); len(all) > maxContainers {
			return nil, problem.New(problem.Usage, "more than %d containers", maxContainers)
		}
	}
	for _, c := range all {
		c.archive = archives[c.id]
	}
	if len(all) == 0 {
		return nil, problem.New(problem.Usage, "no configuration of a container was given").
			Try("name files such as /etc/pve/lxc/101.conf")
	}
	slices.SortFunc(all, func(a, b *container) int { return cmp.Compare(a.id, b.id) })
	return all, nil
}

func readContainer(file string) (*container, error) {
	id, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".conf"))
	if err != nil || id < 1 || id > 999999 {
		return nil, problem.New(problem.Usage, "the file is not named after a container").At(file).
			Try("name it as Proxmox VE does: the id of the container, such as 101.conf")
	}
	text, err := readSource(file)
	if err != nil {
		return nil, err
	}
	c := &container{file: filepath.Base(file), id: id}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxSource)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			break // snapshots follow, and changes that wait for a restart
		}
		key, value, ok := strings.Cut(line, ":")
		switch {
		case line == "" || line[0] == '#':
		case !ok:
			return nil, problem.New(problem.Mistake, "%q is not \"key: value\"", sanitize.Line(problem.Truncate(line, 60))).
				At(fmt.Sprintf("%s:%d", file, number))
		case machineKey().MatchString(key):
			return nil, problem.New(problem.Mistake, "this is a virtual machine: %s", sanitize.Line(key)).
				At(fmt.Sprintf("%s:%d", file, number)).
				Try("import its disk as an image: [image.NAME] import = \"disk.qcow2\" (orrery help image.import)")
		default:
			c.keys = append(c.keys, entry{strings.TrimSpace(key), strings.TrimSpace(value), number})
		}
	}
	return c, nil
}

// machineKey matches keys that only virtual machines have (qm.conf(5)).
var machineKey = pattern.New(`^(scsi|virtio|sata|ide|efidisk|tpmstate|vga|bios|machine|agent|sockets)[0-9]*$`)

// A bridgedNetwork is what containers on one bridge and VLAN have in common.
type bridgedNetwork struct {
	name, bridge, tag string
	subnet            netip.Prefix
	gateway           string
}

// A proxmoxImport is the state of an import.
type proxmoxImport struct {
	sitefile.Imported
	dir      string
	networks map[string]*bridgedNetwork // by bridge, VLAN and subnet
	order    []*bridgedNetwork
	named    sitefile.Names // networks
	taken    sitefile.Names // nodes and volumes
	roles    []host.File
}

// lose records that the site has no place for an entry.
func (p *proxmoxImport) lose(c *container, e entry, why string) {
	p.Lost = append(p.Lost, fmt.Sprintf("%s:%d: %s: %s: %s", c.file, e.line, sanitize.Line(e.key),
		sanitize.Line(problem.Truncate(e.value, 120)), why))
}

func (p *proxmoxImport) todo(format string, args ...any) {
	p.ToDo = append(p.ToDo, fmt.Sprintf(format, args...))
}

// convert returns the files of the site directory.
func (p *proxmoxImport) convert(all []*container) []host.File {
	var nodes, volumes, images strings.Builder
	groups := map[string][]string{}
	for _, c := range all {
		p.node(c, &nodes, &volumes, &images, groups)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# Imported from containers of Proxmox VE. orrery check says what is left to do.\n[site]\nname = %s\n", sitefile.Quote(p.Site))
	for _, n := range p.order {
		fmt.Fprintf(&out, "\n[network.%s]\nsubnet = %s\n", n.name, sitefile.Quote(n.subnet.Masked().String()))
		if n.gateway != "" {
			fmt.Fprintf(&out, "gateway = %s\n", sitefile.Quote(n.gateway))
		}
		if n.tag == "" {
			fmt.Fprintf(&out, "bridge = %s # a bridge of the host; left out: a network of its own\n", sitefile.Quote(n.bridge))
			continue
		}
		fmt.Fprintf(&out, "# interface = \"…\" # the interface below %s\n# vlan = %s\n", sanitize.Line(n.bridge), n.tag)
		p.todo("network %s: write the interface below %s, and vlan = %s", n.name, n.bridge, n.tag)
	}
	out.WriteString(images.String() + volumes.String() + nodes.String())
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(&out, "\n[group.%s]\nnodes = %s\n", group, sitefile.QuoteList(groups[group]))
	}
	return append([]host.File{{Path: filepath.Join(p.dir, sitefile.Name), Content: []byte(out.String()), Mode: 0o644}},
		p.roles...)
}

// node writes the node that a container becomes.
func (p *proxmoxImport) node(c *container, nodes, volumes, images *strings.Builder, groups map[string][]string) {
	hostname := "ct" + strconv.Itoa(c.id)
	for _, e := range c.keys {
		if e.key == "hostname" {
			hostname, _, _ = strings.Cut(e.value, ".")
		}
	}
	name := sitefile.ValidName(hostname, p.taken)
	image := p.imageOf(c, name, images)
	var mounts strings.Builder
	var lines, nics []string
	privileged, autostart := true, false
	for _, e := range c.keys {
		switch {
		case e.key == "hostname" || e.key == "arch" || e.key == "ostype" || e.key == "lock" || e.key == "digest":
		case e.key == "unprivileged":
			privileged = e.value != "1"
		case e.key == "onboot":
			autostart = e.value == "1"
		case e.key == "cores":
			lines = append(lines, p.number(c, e, "cpus"))
		case e.key == "memory" || e.key == "swap":
			lines = append(lines, p.mebibytes(c, e))
		case e.key == "rootfs":
			if size := e.options()["size"]; size != "" {
				p.lose(c, entry{"rootfs", "size=" + size, e.line}, "the root file system has no limit of its own")
			}
		case e.key == "tags":
			for _, tag := range strings.FieldsFunc(e.value, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
				group := sitefile.ValidName(tag, sitefile.Names{})
				groups[group] = append(groups[group], name)
			}
		case strings.HasPrefix(e.key, "net"):
			if line := p.interfaceOf(c, e); line != "" {
				nics = append(nics, line)
			}
		case mountKey().MatchString(e.key):
			p.mount(c, e, name, &mounts, volumes)
		case strings.HasPrefix(e.key, "unused"):
		default:
			p.lose(c, e, "no matching key")
		}
	}
	fmt.Fprintf(nodes, "\n[node.%s]\nid = %d\n", name, c.id)
	if image != "" {
		fmt.Fprintf(nodes, "image = %s\n", sitefile.Quote(image))
	}
	if mounts.Len() > 0 {
		fmt.Fprintf(nodes, "roles = [%s]\n", sitefile.Quote(name))
		p.Roles = append(p.Roles, name)
		p.roles = append(p.roles, host.File{Path: filepath.Join(p.dir, "roles", name, "role.toml"), Mode: 0o644,
			Content: []byte(fmt.Sprintf("description = \"what node %s has beside its image\"\n%s", name, mounts.String()))})
	}
	if privileged {
		lines = append(lines, "privileged = true # as on Proxmox VE; better without")
	}
	if !autostart {
		lines = append(lines, "autostart = false")
	}
	for _, line := range slices.Concat(lines, nics) {
		if line != "" {
			nodes.WriteString(line + "\n")
		}
	}
	if len(nics) == 0 {
		nodes.WriteString("net = {}\n")
	}
}

// mountKey matches a mount point.
var mountKey = pattern.New(`^mp[0-9]+$`)

// imageOf writes the image of a container, which is its backup, and returns its name.
func (p *proxmoxImport) imageOf(c *container, node string, images *strings.Builder) string {
	archive := c.archive
	if archive == "" {
		archive = fmt.Sprintf("vzdump-lxc-%d.tar.zst", c.id)
		p.todo("node %s: make a backup of container %d with vzdump, and name its archive at [image.%s]", node, c.id, node)
	} else if absolute, err := filepath.Abs(archive); err == nil {
		archive = absolute
	}
	fmt.Fprintf(images, "\n[image.%s]\nimport = %s\n", node, sitefile.Quote(archive))
	return node
}

func (p *proxmoxImport) number(c *container, e entry, key string) string {
	if n, err := strconv.ParseFloat(e.value, 64); err != nil || !(n >= 0.01) || n > 1<<16 {
		p.lose(c, e, "not a number of processors")
		return ""
	}
	return key + " = " + e.value
}

func (p *proxmoxImport) mebibytes(c *container, e entry) string {
	n, err := strconv.Atoi(e.value)
	if err != nil || n < 0 || n > 1<<30 || e.key == "memory" && n < 16 {
		p.lose(c, e, "not a size in MiB of at least 16")
		return ""
	}
	return fmt.Sprintf("%s = %s", e.key, sitefile.Quote(strconv.Itoa(n)+"MiB"))
}

// interfaceOf returns the line of an interface, or "" if the site has no place for it.
func (p *proxmoxImport) interfaceOf(c *container, e entry) string {
	o := e.options()
	address, err := netip.ParsePrefix(o["ip"])
	if err != nil || !address.Addr().Is4() || o["bridge"] == "" {
		p.lose(c, e, "nodes have fixed IPv4 addresses: write one (ip=10.8.67.11/24), and the network with it")
		return ""
	}
	n := p.network(o["bridge"], o["tag"], address.Masked())
	if gateway, err := netip.ParseAddr(o["gw"]); err == nil && address.Masked().Contains(gateway) && n.gateway == "" {
		n.gateway = gateway.String()
	}
	for _, option := range []string{"ip6", "rate", "trunks"} {
		if o[option] != "" && o[option] != "auto" {
			p.lose(c, entry{e.key, option + "=" + o[option], e.line}, "no matching key")
		}
	}
	return fmt.Sprintf("net.%s = %s", n.name, sitefile.Quote(address.Addr().String()))
}

// network returns the network of a bridge, a VLAN and a subnet.
func (p *proxmoxImport) network(bridge, tag string, subnet netip.Prefix) *bridgedNetwork {
	key := bridge + " " + tag + " " + subnet.String()
	if n := p.networks[key]; n != nil {
		return n
	}
	name := bridge
	if tag != "" {
		name += "-" + tag
	}
	n := &bridgedNetwork{name: sitefile.ValidName(name, p.named), bridge: bridge, tag: sanitize.Line(tag), subnet: subnet}
	if _, err := strconv.Atoi(tag); err != nil {
		n.tag = ""
	}
	p.networks[key], p.order = n, append(p.order, n)
	return n
}

// mount writes a mount point as a volume.
func (p *proxmoxImport) mount(c *container, e entry, node string, mounts, volumes *strings.Builder) {
	o := e.options()
	if !filepath.IsAbs(o["mp"]) {
		p.lose(c, e, "no path in the node (mp=/srv)")
		return
	}
	name := sitefile.ValidName(node+"-"+e.key, p.taken)
	fmt.Fprintf(mounts, "\n[[volume]]\nname = %s\npath = %s\n", sitefile.Quote(name), sitefile.Quote(o["mp"]))
	if filepath.IsAbs(o[""]) {
		fmt.Fprintf(volumes, "\n[volume.%s]\npath = %s\n", name, sitefile.Quote(o[""]))
		if o["shared"] == "1" {
			volumes.WriteString("shared = true\n")
		}
		return
	}
	p.todo("volume %s: copy %s of container %d into it (orrery volume ls names the place)", name,
		sanitize.Line(problem.Truncate(o[""], 80)), c.id)
	if o["size"] != "" {
		p.lose(c, entry{e.key, "size=" + o["size"], e.line}, "volumes have no limit of their own")
	}
}
