package draft

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/strict"
	"orrery/internal/text/pattern"
)

// A composeService is a service that becomes a node.
type composeService struct {
	pair
	node     string
	count    int
	settings []string // lines of the node
	publish  []string
	needs    []string        // roles that must be healthy first
	env      []string        // lines of the role
	role     strings.Builder // its tables
}

// service writes the node and the role of a service, and returns how many ids it takes.
func (c *composeImport) service(p pair, id int, nodes *strings.Builder) int {
	s := &composeService{pair: p, node: c.nodes[p.key]}
	keys := c.pairs(p.value)
	var name string
	name, s.count = c.nodesOf(s.node, keys)
	for _, key := range keys {
		c.serviceKey(s, key)
	}
	c.interfaces(s, keys)
	fmt.Fprintf(nodes, "\n[node.%s]\nid = %d\nroles = [%s]\n", name, id, sitefile.Quote(s.node))
	for _, line := range s.settings {
		nodes.WriteString(line + "\n")
	}
	c.role(s.node, s.roleText(c.file))
	return s.count
}

func (s *composeService) roleText(file string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "description = %s\n", sitefile.Quote("service "+s.key+" of "+file))
	out.WriteString("# apt = [\"…\"] # what the image has: packages, files, services. See docs/roles.md\n")
	if len(s.needs) > 0 {
		fmt.Fprintf(&out, "\n[needs]\nhealthy = %s\n", sitefile.QuoteList(s.needs))
	}
	if len(s.env) > 0 {
		out.WriteString("\n[env]\n" + strings.Join(s.env, "\n") + "\n")
	}
	return out.String() + s.role.String()
}

// ignored are keys of a service that mean nothing to a node: what they ask for is so anyway.
var ignored = []string{"networks", "network_mode", "scale", "expose", "init", "tty", "stdin_open", "pull_policy",
	"platform"}

// serviceKey converts a key of a service.
func (c *composeImport) serviceKey(s *composeService, p pair) {
	switch p.key {
	case "image":
		c.image(s, p)
	case "build":
		c.todo(p.line, "service %s: write what its Dockerfile does into roles/%s/role.toml (files, apt, pip, build steps)",
			s.node, s.node)
	case "environment":
		c.environment(s, p)
	case "env_file":
		for _, file := range c.lists(p.key, p.value) {
			c.lose(p.line, shown(s.key+": env_file", file), "%s: copy its lines into [env] of roles/%s/role.toml", errNoFile,
				s.node)
		}
	case "volumes":
		for _, item := range c.items(p.value) {
			c.mount(s, item)
		}
	case "ports":
		for _, item := range c.items(p.value) {
			c.port(s, item)
		}
	case "depends_on":
		c.dependsOn(s, p)
	case "healthcheck":
		c.health(s, p)
	case "secrets":
		c.serviceSecrets(s, p)
	case "deploy":
		c.deploy(s, p)
	case "cpus", "mem_limit", "pids_limit":
		c.limit(s, p)
	case "restart":
		c.restart(s, p)
	case "privileged":
		if text, _ := c.scalar(p.value); text == "true" {
			s.settings = append(s.settings, "privileged = true # as with Docker; better without")
		}
	case "container_name", "hostname":
		if text, _ := c.scalar(p.value); text != s.node {
			c.lose(p.line, shown(s.key+": "+p.key, text), "the node is called %s, after its service", s.node)
		}
	case "command", "entrypoint":
		c.lose(p.line, s.key+": "+p.key, "write a systemd unit in roles/%s/role.toml, and name it in services", s.node)
	default:
		if !slices.Contains(ignored, p.key) && !strings.HasPrefix(p.key, "x-") {
			c.lose(p.line, s.key+": "+p.key, "no matching key")
		}
	}
}

// imageReference matches the name of an image that may stand in a command.
var imageReference = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,200}$`)

func (c *composeImport) image(s *composeService, p pair) {
	text, _ := c.scalar(p.value)
	c.todo(p.line, "service %s: %s is an image of an application, which no node boots: install what it has by roles/%s/role.toml",
		s.node, shown("image", text), s.node)
	if imageReference().MatchString(text) {
		c.todo(p.line, "service %s: or, if the image is a whole system with systemd: skopeo copy docker://%s oci-archive:%s.tar, "+
			"and [image.%s] import = \"%s.tar\"", s.node, text, s.node, s.node, s.node)
	}
}

func (c *composeImport) restart(s *composeService, p pair) {
	switch text, _ := c.scalar(p.value); text {
	case "always", "unless-stopped": // as all nodes
	case "no", "false":
		s.settings = append(s.settings, "autostart = false")
	default:
		c.lose(p.line, shown(s.key+": restart", text), "write Restart= in the unit of the role")
	}
}

var (
	envName    = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	secretWord = pattern.New(`(?i)password|passwd|secret|token|private_key|api_key`)
)

// environment writes the variables of a service, which are a mapping or a list of NAME=VALUE.
func (c *composeImport) environment(s *composeService, p pair) {
	seen := map[string]bool{}
	set := func(name string, line int, value string) {
		switch {
		case !envName().MatchString(name) || strings.HasPrefix(name, "ORRERY_") || seen[name]:
			c.lose(line, s.key+": environment: "+name, "not a valid name of a variable, or set twice")
			return
		case strings.ContainsAny(value, "\n\x00") || len(value) > maxVariable:
			c.lose(line, s.key+": environment: "+name, "a variable has one line: use a file")
			return
		case secretWord().MatchString(name) && !strings.HasSuffix(name, "_FILE"):
			c.todo(line, "service %s: %s is in clear text in roles/%s/role.toml: use a [[secret]]", s.node, name, s.node)
		}
		seen[name] = true
		if secret, ok := strings.CutPrefix(value, "/run/secrets/"); ok {
			value = "/etc/orrery/secrets/" + secret
		}
		s.env = append(s.env, name+" = "+sitefile.Quote(value))
	}
	for _, v := range c.pairs(p.value) {
		if text, ok := c.text(s.key+": environment: "+v.key, v.value); ok {
			set(v.key, v.line, text)
		} else if _, ok := c.scalar(v.value); !ok {
			c.lose(v.line, s.key+": environment: "+v.key, "the value is a variable of the caller: write it yourself")
		}
	}
	for _, item := range c.items(p.value) {
		said, _ := c.scalar(item)
		name, _, given := strings.Cut(said, "=")
		if text, ok := c.text(s.key+": environment", item); ok && given {
			_, value, _ := strings.Cut(text, "=")
			set(name, item.Line, value)
		} else if ok {
			c.lose(item.Line, s.key+": environment: "+said, "the value is a variable of the caller: write it yourself")
		}
	}
}

// mount writes a volume of a service. The short form is SOURCE:TARGET[:MODE].
func (c *composeImport) mount(s *composeService, n *yaml.Node) {
	said, short := c.text(s.key+": volumes", n)
	var source, target, mode, kind string
	if short {
		parts := strings.SplitN(said, ":", 3)
		switch len(parts) {
		case 1:
			target = parts[0]
		case 3:
			mode = parts[2]
			fallthrough
		default:
			source, target = parts[0], parts[1]
		}
	} else {
		keys := c.pairs(n)
		if keys == nil {
			return // it was reported
		}
		source, _ = c.text(s.key+": volumes", find(keys, "source"))
		target, _ = c.text(s.key+": volumes", find(keys, "target"))
		kind, _ = c.scalar(find(keys, "type"))
		said = kind + " " + source + ":" + target
	}
	what := shown(s.key+": volumes", said)
	switch {
	case kind == "tmpfs":
		c.lose(n.Line, what, "a node has a tmpfs at /run and /tmp; a mount unit of the role makes others")
		return
	case kind == "bind" || strings.ContainsAny(source, "/~"):
		c.lose(n.Line, what, "%s: copy a file into roles/%s and name it as a [[file]]; a directory with data is a [[volume]] "+
			"with [volume.NAME] path", errNoFile, s.node)
		return
	case !strings.HasPrefix(target, "/") || path.Clean(target) != target || target == "/":
		c.lose(n.Line, what, "no clean path in the node")
		return
	}
	name := c.named[source]
	if source == "" || name == "" {
		as := source
		if as == "" {
			as = s.node + "-" + path.Base(target)
		}
		name = sitefile.ValidName(as, c.volumes)
	}
	if source != "" {
		c.named[source] = name
		c.mounted[source] += s.count
	}
	if mode != "" && mode != "rw" && mode != "z" && mode != "Z" {
		c.lose(n.Line, what, "volumes can be written")
	}
	fmt.Fprintf(&s.role, "\n[[volume]]\nname = %s\npath = %s\n", sitefile.Quote(name), sitefile.Quote(target))
}

// port writes a published port. The short form is [[ADDRESS:]HOST:]NODE[/PROTOCOL].
func (c *composeImport) port(s *composeService, n *yaml.Node) {
	said, short := c.text(s.key+": ports", n)
	if !short {
		keys := c.pairs(n)
		if keys == nil {
			return // it was reported
		}
		part := func(key string) string { text, _ := c.text(s.key+": ports", find(keys, key)); return text }
		said = part("target")
		if published := part("published"); published != "" {
			said = published + ":" + said
		}
		if address := part("host_ip"); address != "" {
			said = address + ":" + said
		}
		if protocol := part("protocol"); protocol != "" {
			said += "/" + protocol
		}
	}
	if !strings.Contains(said, ":") {
		c.lose(n.Line, shown(s.key+": ports", said), "Docker chooses a port of the host: write publish = [\"HOST:NODE\"]")
		return
	}
	port, err := site.ParsePublish(said)
	switch {
	case err != nil:
		c.lose(n.Line, shown(s.key+": ports", said), "%v", err)
	case port.Address.IsLoopback():
		c.lose(n.Line, shown(s.key+": ports", said), "a port of the host's loopback: orrery forward reaches the node")
	default:
		s.publish = append(s.publish, said)
	}
}

func (c *composeImport) dependsOn(s *composeService, p pair) {
	need := func(service string, line int) {
		if node := c.nodes[service]; node != "" && service != s.key {
			s.needs = append(s.needs, "role="+node)
			return
		}
		c.lose(line, shown(s.key+": depends_on", service), "there is no such service")
	}
	for _, item := range c.items(p.value) {
		if service, ok := c.scalar(item); ok {
			need(service, item.Line)
		}
	}
	for _, on := range c.pairs(p.value) {
		need(on.key, on.line)
		if condition, _ := c.scalar(find(c.pairs(on.value), "condition")); condition == "service_completed_successfully" {
			c.lose(on.line, shown(s.key+": depends_on", on.key+": "+condition), "it waits until the node is healthy")
		}
	}
}

// health writes a health check.
func (c *composeImport) health(s *composeService, p pair) {
	keys := c.pairs(p.value)
	if off, _ := c.scalar(find(keys, "disable")); off == "true" {
		return
	}
	test := find(keys, "test")
	command := c.lists(s.key+": healthcheck", test)
	if _, one := c.scalar(test); one && len(command) == 1 {
		command = []string{"CMD-SHELL", command[0]}
	}
	if len(command) < 2 || command[1] == "" {
		c.lose(p.line, s.key+": healthcheck", "it has no command")
		return
	}
	switch command[0] {
	case "CMD":
		command = command[1:]
	case "CMD-SHELL":
		command = []string{"/bin/sh", "-c", command[1]}
	default:
		c.lose(p.line, s.key+": healthcheck", "it has no command")
		return
	}
	times := map[string]time.Duration{"timeout": 5 * time.Second, "interval": 0, "start_period": 0}
	retries := 3
	for _, k := range keys {
		text, _ := c.scalar(k.value)
		switch d, err := time.ParseDuration(text); {
		case k.key == "test" || k.key == "disable":
		case k.key == "retries":
			if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 10_000 {
				retries = n
			}
		case times[k.key] == 0 && k.key != "interval" && k.key != "start_period":
			c.lose(k.line, s.key+": healthcheck: "+k.key, "no matching key")
		case err != nil || d < time.Millisecond || d > time.Hour:
			c.lose(k.line, shown(s.key+": healthcheck: "+k.key, text), "not a time from 1ms to 1h")
		default:
			times[k.key] = d
		}
	}
	fmt.Fprintf(&s.role, "\n[[health]]\ncommand = %s\ntimeout = \"%s\"\n", sitefile.QuoteList(command), times["timeout"])
	if times["interval"] > 0 {
		fmt.Fprintf(&s.role, "interval = \"%s\"\n", times["interval"])
	}
	within := times["start_period"] + time.Duration(retries)*(times["interval"]+times["timeout"])
	fmt.Fprintf(&s.role, "within = \"%s\"\n", max(within, time.Minute))
}

func (c *composeImport) serviceSecrets(s *composeService, p pair) {
	for _, item := range c.items(p.value) {
		name, ok := c.scalar(item)
		if !ok {
			keys := c.pairs(item)
			name, _ = c.scalar(find(keys, "source"))
			for _, k := range keys {
				if k.key != "source" {
					c.lose(k.line, s.key+": secrets: "+k.key, "the secret is at /etc/orrery/secrets/%s", name)
				}
			}
		}
		if _, declared := c.secrets[name]; !declared || !envName().MatchString(name) || len(name) > 60 {
			c.lose(item.Line, shown(s.key+": secrets", name), "not declared, or not a name of letters, digits and \"_\"")
			continue
		}
		if !slices.Contains(c.used, name) {
			c.used = append(c.used, name)
		}
		fmt.Fprintf(&s.role, "\n[[secret]]\nname = %s # at /etc/orrery/secrets/%s\n", sitefile.Quote(name), name)
	}
}

// deploy writes the limits of a service.
func (c *composeImport) deploy(s *composeService, p pair) {
	for _, k := range c.pairs(p.value) {
		switch k.key {
		case "replicas":
		case "resources":
			for _, part := range c.pairs(k.value) {
				if part.key != "limits" {
					c.lose(part.line, s.key+": "+part.key, "no matching key")
					continue
				}
				for _, limit := range c.pairs(part.value) {
					c.limit(s, limit)
				}
			}
		default:
			c.lose(k.line, s.key+": deploy: "+k.key, "no matching key")
		}
	}
}

// dockerSize matches a size of Docker: a number and a letter.
var dockerSize = pattern.New(`^([0-9]{1,12})([bkmgBKMG]?)[bB]?$`)

func (c *composeImport) limit(s *composeService, p pair) {
	text, ok := c.text(s.key+": "+p.key, p.value)
	line, lost := "", ""
	switch p.key {
	case "cpus":
		if f, err := strconv.ParseFloat(text, 64); err == nil && f >= 0.01 && f <= 1024 {
			line = "cpus = " + tomlFloat(f)
		}
	case "memory", "mem_limit":
		if m := dockerSize().FindStringSubmatch(text); m != nil {
			unit := map[string]string{"k": "KiB", "m": "MiB", "g": "GiB"}[strings.ToLower(m[2])]
			var size strict.Size
			if size.Parse(m[1]+unit) == nil && size >= 16<<20 && size <= 1<<50 {
				line = "memory = " + sitefile.Quote(m[1]+unit)
			}
		}
	case "pids", "pids_limit":
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 1<<22 {
			line = "pids = " + strconv.Itoa(n)
		}
	default:
		lost = "no matching key"
	}
	key, _, _ := strings.Cut(line, " ")
	switch {
	case lost == "" && line == "" && ok:
		lost = "not a limit that a node can have (memory: at least 16 MiB)"
	case slices.ContainsFunc(s.settings, func(l string) bool { return strings.HasPrefix(l, key+" =") }) && line != "":
		lost = "set twice"
	}
	if lost != "" {
		c.lose(p.line, shown(s.key+": "+p.key, text), "%s", lost)
	} else if line != "" {
		s.settings = append(s.settings, line)
	}
}

// interfaces writes on which networks the node is, and its ports.
func (c *composeImport) interfaces(s *composeService, keys []pair) {
	if mode := find(keys, "network_mode"); mode != nil {
		if text, _ := c.scalar(mode); text != "none" {
			c.lose(mode.Line, shown(s.key+": network_mode", text), "the node is on no network: name some by net.NAME")
		}
	}
	on := c.networksOf(keys)
	options := map[string]*yaml.Node{}
	for _, p := range c.pairs(find(keys, "networks")) {
		options[p.key] = p.value
	}
	wayOut, connected := false, false
	for _, n := range c.networks {
		if !slices.Contains(on, n.key) {
			continue
		}
		address := "auto"
		for _, option := range c.pairs(options[n.key]) {
			text, _ := c.scalar(option.value)
			a, err := netip.ParseAddr(text)
			if option.key == "ipv4_address" && err == nil && s.count == 1 && n.subnet.Contains(a) &&
				a != n.subnet.Addr() && a != n.subnet.Addr().Next() && a != site.Broadcast(n.subnet) {
				address = a.String()
				continue
			}
			c.lose(option.line, shown(s.key+": networks: "+option.key, text), "no matching key, or not an address of the network")
		}
		s.settings = append(s.settings, fmt.Sprintf("net.%s = %s", n.name, sitefile.Quote(address)))
		wayOut, connected = wayOut || !n.internal, true
	}
	for _, name := range on {
		if !slices.ContainsFunc(c.networks, func(n *composeNetwork) bool { return n.key == name }) {
			c.lose(s.line, shown(s.key+": networks", name), "not declared")
		}
	}
	if !connected {
		s.settings = append(s.settings, "net = {}")
	}
	if len(s.publish) > 0 && !wayOut {
		c.lose(s.line, s.key+": ports", "the node is on no network with a gateway")
	} else if len(s.publish) > 0 {
		s.settings = append(s.settings, "publish = "+sitefile.QuoteList(s.publish))
	}
}
