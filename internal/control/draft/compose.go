package draft

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/pattern"
)

// A composeImport is the state of an import of a file of Docker Compose.
type composeImport struct {
	conversion
	*document
	nodes    map[string]string // nodes and their roles, by service
	networks []*composeNetwork
	mounted  map[string]int    // how many nodes mount each volume
	volumes  sitefile.Names    // names in use
	named    map[string]string // names of volumes in the site, by those in the file
	secrets  map[string]pair   // declared, by name
	used     []string          // secrets that services use, in order
}

// A composeNetwork is a network of the site.
type composeNetwork struct {
	key, name string
	subnet    netip.Prefix
	internal  bool // it has no way out
}

// ImportCompose writes a site directory from a file of Docker Compose. Each service becomes a node
// with a role of its own. It returns the paths of its files.
func ImportCompose(dir, name, file string) (made *sitefile.Imported, paths []string, err error) {
	text, err := readSource(file)
	if err != nil {
		return nil, nil, err
	}
	c := &composeImport{nodes: map[string]string{}, mounted: map[string]int{}, volumes: sitefile.Names{},
		named: map[string]string{}, secrets: map[string]pair{}}
	if c.document, err = parseYAML(file, text); err != nil {
		return nil, nil, err
	}
	top := c.pairs(c.root)
	if declared, ok := c.scalar(find(top, "name")); ok && name == "" {
		name = siteName(declared)
	}
	if c.conversion, err = newConversion(dir, name, file); err != nil {
		return nil, nil, err
	}
	siteText := c.convert(top)
	if c.wrong != nil {
		return nil, nil, c.wrong
	}
	paths, err = c.write(siteText)
	return &c.Imported, paths, err
}

// convert returns the site file.
func (c *composeImport) convert(top []pair) string {
	services := c.pairs(find(top, "services"))
	if len(services) == 0 {
		c.mistake(c.root.Line, "the file has no services: is it one of Docker Compose?")
		return ""
	}
	if len(services) > maxConverted {
		c.mistake(services[0].line, "more than %d services", maxConverted)
		return ""
	}
	taken := sitefile.Names{}
	for _, s := range services {
		c.nodes[s.key] = sitefile.ValidName(s.key, taken)
	}
	for _, s := range c.pairs(find(top, "secrets")) {
		c.secrets[s.key] = s
	}
	volumes := c.pairs(find(top, "volumes"))
	for _, p := range top {
		switch {
		case slices.Contains([]string{"name", "version", "services", "networks", "volumes", "secrets"}, p.key):
		case strings.HasPrefix(p.key, "x-"): // what other parts refer to
		default:
			c.lose(p.line, p.key, "no matching key")
		}
	}
	c.declareNetworks(c.pairs(find(top, "networks")), services)
	var nodes strings.Builder
	for i, id := 0, firstID; i < len(services) && c.wrong == nil; i++ {
		id += c.service(services[i], id, &nodes)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# Imported from %s, a file of Docker Compose. Each service is a node, with a role to write.\n"+
		"[site]\nname = %s\n", c.file, sitefile.Quote(c.Site))
	for _, n := range c.networks {
		fmt.Fprintf(&out, "\n[network.%s]\nsubnet = %s\n", n.name, sitefile.Quote(n.subnet.String()))
		if !n.internal {
			fmt.Fprintf(&out, "gateway = %s\nnat = true\n", sitefile.Quote(n.subnet.Addr().Next().String()))
		}
	}
	out.WriteString("\n[image.debian]\nsuite = \"bookworm\"\n")
	c.declareVolumes(volumes, &out)
	c.declareSecrets(&out)
	return out.String() + nodes.String()
}

// declareNetworks chooses the networks of the site: those that the file declares and that a service is on.
func (c *composeImport) declareNetworks(declared, services []pair) {
	taken := takenSubnets()
	used := map[string]bool{}
	for _, s := range services {
		keys := c.pairs(s.value)
		for _, name := range c.networksOf(keys) {
			used[name] = true
		}
	}
	named := sitefile.Names{}
	add := func(p pair) {
		n := &composeNetwork{key: p.key, name: sitefile.ValidName(p.key, named)}
		for _, option := range c.pairs(p.value) {
			switch text, _ := c.scalar(option.value); {
			case option.key == "internal":
				n.internal = text == "true"
			case option.key == "ipam":
				n.subnet = c.subnetOf(option, taken)
			case option.key == "driver" && (text == "bridge" || text == "default"):
			case option.key == "name":
			case option.key == "external":
				c.lose(option.line, "network "+p.key+": external", "the site gets a network of its own")
			default:
				c.lose(option.line, "network "+p.key+": "+option.key, "no matching key")
			}
		}
		if !n.subnet.IsValid() {
			n.subnet = subnetFor(c.Site, len(services), taken)
		}
		taken = append(taken, n.subnet)
		c.networks = append(c.networks, n)
	}
	for _, p := range declared {
		if used[p.key] {
			add(p)
		} else if p.key != defaultNetwork {
			c.lose(p.line, "network "+p.key, "no service is on it")
		}
		delete(used, p.key)
	}
	if used[defaultNetwork] {
		add(pair{key: defaultNetwork})
	}
}

// defaultNetwork is the network of services that name none.
const defaultNetwork = "default"

// networksOf returns the networks that a service names.
func (c *composeImport) networksOf(keys []pair) (names []string) {
	on := find(keys, "networks")
	for _, item := range c.items(on) {
		if name, ok := c.scalar(item); ok {
			names = append(names, name)
		}
	}
	for _, p := range c.pairs(on) {
		names = append(names, p.key)
	}
	if len(names) == 0 && find(keys, "network_mode") == nil {
		names = []string{defaultNetwork}
	}
	return names
}

// subnetOf returns the subnet that a network declares, or the zero Prefix.
func (c *composeImport) subnetOf(ipam pair, taken []netip.Prefix) (subnet netip.Prefix) {
	configs := c.items(find(c.pairs(ipam.value), "config"))
	for _, config := range configs {
		for _, p := range c.pairs(config) {
			text, _ := c.scalar(p.value)
			what := "ipam: " + p.key + ": " + text
			prefix, err := netip.ParsePrefix(text)
			switch {
			case p.key != "subnet":
				c.lose(p.line, what, "no matching key")
			case err != nil || site.SubnetCapacity(prefix) < 2 || subnet.IsValid():
				c.lose(p.line, what, "a network has one IPv4 subnet")
			case !isFree(prefix.Masked(), taken):
				c.lose(p.line, what, "taken on this host, or by another network: the network gets a free subnet")
			default:
				subnet = prefix.Masked()
			}
		}
	}
	return subnet
}

// declareVolumes writes the volumes that are not as Orrery makes them if told nothing.
func (c *composeImport) declareVolumes(declared []pair, out *strings.Builder) {
	for _, p := range declared {
		for _, option := range c.pairs(p.value) {
			if option.key != "name" && option.key != "driver" {
				c.lose(option.line, "volume "+p.key+": "+option.key, "no matching key")
			} else if text, _ := c.scalar(option.value); option.key == "driver" && text != "local" {
				c.lose(option.line, "volume "+p.key+": driver "+text, "no matching key")
			}
		}
		name := c.named[p.key]
		switch {
		case c.mounted[p.key] == 0:
			c.lose(p.line, "volume "+p.key, "no service mounts it")
		case c.mounted[p.key] > 1:
			fmt.Fprintf(out, "\n[volume.%s]\nshared = true # by %d nodes\n", name, c.mounted[p.key])
		}
		if name != "" {
			c.todo(p.line, "volume %s: copy the data of the Docker volume into it (orrery volume ls names the place)", name)
		}
	}
}

func (c *composeImport) declareSecrets(out *strings.Builder) {
	for _, name := range c.used {
		p := c.secrets[name]
		keys := c.pairs(p.value)
		fmt.Fprintf(out, "\n[secret.%s]\n", sitefile.Quote(name))
		if file, ok := c.scalar(find(keys, "file")); ok && strings.HasPrefix(file, "/") && !strings.Contains(file, "$") {
			fmt.Fprintf(out, "file = %s\n", sitefile.Quote(file))
			continue
		}
		out.WriteString("generate = 32 # or file = \"/…\", outside of the site directory\n")
		c.lose(p.line, "secret "+name, "a secret is a file with a full path, outside of the site directory, or generated")
	}
}

// variableReference matches what Compose replaces by variables of its caller.
var variableReference = pattern.New(`\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)([^${}]*))?\}|[A-Za-z_{])`)

// text returns a scalar with its references to variables replaced by their defaults, or false if it has
// a reference without one, which is then reported.
func (c *composeImport) text(what string, n *yaml.Node) (string, bool) {
	said, ok := c.scalar(n)
	if !ok {
		return "", false
	}
	for _, m := range variableReference().FindAllStringSubmatch(said, -1) {
		if m[0] != "$$" && m[2] == "" {
			c.lose(n.Line, what+": "+said, "the value is a variable of the caller: write it yourself")
			return "", false
		}
	}
	return variableReference().ReplaceAllStringFunc(said, func(found string) string {
		if found == "$$" {
			return "$"
		}
		return variableReference().FindStringSubmatch(found)[3]
	}), true
}

// nodesOf returns the name of the node or nodes that a service becomes, and how many they are.
func (c *composeImport) nodesOf(node string, keys []pair) (name string, count int) {
	for _, at := range []*yaml.Node{find(keys, "scale"), find(c.pairs(find(keys, "deploy")), "replicas")} {
		text, ok := c.scalar(at)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < 0 || n > maxConverted:
			c.lose(at.Line, "replicas: "+text, "not a number of nodes up to %d", maxConverted)
		case n == 0:
			c.lose(at.Line, "replicas: 0", "the node exists; orrery stop stops it")
		case n > 1:
			return fmt.Sprintf("%q", fmt.Sprintf("%s{1..%d}", node, n)), n
		}
	}
	return node, 1
}

// lists returns the texts of a value that is one text or a list of them.
func (c *composeImport) lists(what string, n *yaml.Node) (all []string) {
	if text, ok := c.text(what, n); ok {
		return []string{text}
	}
	for _, item := range c.items(n) {
		if text, ok := c.text(what, item); ok {
			all = append(all, text)
		}
	}
	return all
}

// errNoFile is what is said about files beside the file of Docker Compose. They are not read, because
// the file may come from a stranger and name any file of this machine.
const errNoFile = "files that it names are not read"

// shown returns a value as it is in a message.
func shown(key, value string) string { return problem.Truncate(key+": "+value, 100) }
