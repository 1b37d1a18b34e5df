package lab

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"github.com/vishvananda/netlink"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/place"
	"orrery/internal/lab/setting"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/tree"
)

// A labSite is the site of an experiment on this host. It exists only during the run.
type labSite struct {
	Session *control.Session
	*setting.Testbed
	site  *site.Site
	hosts *apply.Fleet
	work  string
	sent  string // directory of programs that were sent here for the run
}

// onHost returns the experiment adapted to this host.
func onHost(ctx context.Context, c *control.Session, e *experiment.Experiment) (*experiment.Experiment, error) {
	f, err := c.Hosts(ctx, &site.Site{Name: setting.SiteName})
	if err != nil {
		return nil, err
	}
	near, err := here.AsLocal(f.All[0])
	if err != nil {
		return nil, err
	}
	engines := map[string]observe.Capabilities{}
	for name, e := range near.ByName() {
		engines[name] = engine.ProbedCapabilities(ctx, e)
	}
	return e.ForHost(engines), nil
}

// newLabSite creates the site directory of an experiment, unless a former run has created it, and
// loads it.
func newLabSite(ctx context.Context, c *control.Session, e *experiment.Experiment, dir string) (*labSite, error) {
	work := filepath.Join(Bundles(c), ".work")
	if e.Dir != "" {
		work = filepath.Join(e.Dir, setting.SiteName)
	}
	subnets, err := freeSubnets(setting.Networks(e))
	if err != nil {
		return nil, err
	}
	s := &labSite{Session: c, Testbed: setting.New(e, work, subnets), work: work}
	if _, err := os.Stat(filepath.Join(dir, "site.toml")); errors.Is(err, os.ErrNotExist) {
		if err := s.Write(dir); err != nil {
			return nil, err
		}
	}
	if s.site, err = sitefile.Load(dir); err != nil {
		return nil, err
	}
	s.hosts, err = c.Hosts(ctx, s.site)
	return s, err
}

// begin creates the settings. First it removes what a killed run left, because up would not touch a
// node that was about to be destroyed.
func (s *labSite) begin(ctx context.Context, aside func() (control.Watcher, func())) error {
	if tree.Exists(s.Session.Dirs.Site(s.site.Key())) {
		err := s.showIfFailed(aside, func() error { return s.clear(ctx) })
		if err != nil {
			return err
		}
	}
	return s.up(ctx)
}

// up creates the settings.
func (s *labSite) up(ctx context.Context) error {
	if err := os.MkdirAll(s.work, 0o700); err != nil {
		// root mounts parts of it into nodes, which may make them readable for all
		return err
	}
	j := &control.Job{Session: s.Session, Site: s.site, Hosts: s.hosts,
		Do: control.Steps(func(hosts []observe.Host) (*plan.Plan, error) {
			return plan.Up(s.site, hosts, plan.Goal{})
		})}
	_, err := j.Run(ctx)
	return err
}

// down removes the settings and all that was written in them. It keeps the layers.
func (s *labSite) down(ctx context.Context) error {
	if err := s.clear(ctx); err != nil {
		return err
	}
	var err error
	for _, dir := range []string{s.Session.Dirs.Site(s.site.Key()), filepath.Join(s.Session.Dirs.Run, "lab")} {
		err = errors.Join(err, tree.RemoveAll(dir))
	}
	return err
}

// clear removes the nodes, their networks, and the work directories.
func (s *labSite) clear(ctx context.Context) error {
	j := &control.Job{Session: s.Session, Site: s.site, Hosts: s.hosts,
		Do: control.Steps(func(hosts []observe.Host) (*plan.Plan, error) {
			return plan.Down(s.site, hosts, plan.Goal{}), nil
		})}
	if _, err := j.Run(ctx); err != nil {
		return err
	}
	if err := s.removeBareGroups(ctx); err != nil {
		return err
	}
	return tree.RemoveAll(s.work) // nodes wrote to it
}

// recreate recreates the settings, with their networks and empty directories. The steps are displayed
// only if one fails.
func (s *labSite) recreate(ctx context.Context, aside func() (control.Watcher, func())) (*setting.Places, error) {
	err := s.showIfFailed(aside, func() error {
		if err := s.clear(ctx); err != nil {
			return err
		}
		return s.up(ctx)
	})
	if err != nil {
		return nil, err
	}
	return s.environment(ctx)
}

// showIfFailed does work whose steps are displayed only if it fails.
func (s *labSite) showIfFailed(aside func() (control.Watcher, func()), work func() error) error {
	loud := s.Session
	defer func() { s.Session = loud }()
	watcher, show := aside()
	quiet := *loud
	quiet.Watcher = watcher
	s.Session = &quiet
	err := work()
	if err != nil {
		show()
	}
	return err
}

// environment finds the places of the settings, and installs Orrery's own tools in them.
func (s *labSite) environment(ctx context.Context) (*setting.Places, error) {
	tools, err := tools(s.Needs.Tools, s.sent)
	if err != nil {
		return nil, err
	}
	if err := s.createBareGroups(); err != nil {
		return nil, err
	}
	near, err := here.AsLocal(s.hosts.All[0])
	if err != nil {
		return nil, err
	}
	g, err := s.Places(s.site, setting.HostInfo{
		Engine: func(name string) engine.Engine { return near.ByName()[name] },
		Tree:   image.Open(s.Session.Dirs.State).Tree, Tools: tools, Run: s.Session.Dirs.Run,
	})
	if err != nil {
		return nil, err
	}
	nodes := map[string]*place.Place{}
	for name, all := range g.Near {
		for _, p := range append([]*place.Place{g.Far[name]}, all...) {
			if p.Node != "" {
				nodes[p.Node] = p
			}
		}
	}
	for _, p := range nodes {
		if err := installTools(ctx, p, tools); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func installTools(ctx context.Context, p *place.Place, tools map[string]string) error {
	for name, path := range tools {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := p.Put(ctx, host.File{Path: "/usr/local/bin/" + name, Content: content, Mode: 0o755}); err != nil {
			return err
		}
	}
	return nil
}

// writePrograms stores programs that were sent here. It removes those of a killed run first.
func writePrograms(dir string, programs map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, content := range programs {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
		if err := host.WriteFile(host.File{Path: filepath.Join(dir, name), Content: content, Mode: 0o755}); err != nil {
			return err
		}
	}
	return nil
}

// programs reads the programs that an experiment needs and another host may lack. It omits Orrery
// itself, which runs there as the helper.
func programs(e *experiment.Experiment) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, name := range setting.New(e, "", nil).Needs.Tools {
		if name == place.Orrery {
			continue
		}
		path, err := host.FindTool(name)
		if err != nil {
			return nil, err
		}
		if all[name], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// tools finds the files of tools on this host: the running program itself, what was sent here, and
// what was installed beside the running program.
func tools(names []string, sent string) (map[string]string, error) {
	found := map[string]string{}
	var all problem.List
	for _, name := range names {
		var err error
		if name == place.Orrery {
			found[name], err = os.Executable()
		} else if path := filepath.Join(sent, name); tree.Exists(path) {
			found[name] = path
		} else {
			found[name], err = host.FindTool(name)
		}
		if p := (*problem.Problem)(nil); errors.As(err, &p) {
			all = append(all, p)
		} else if err != nil {
			return nil, err
		}
	}
	return found, all.OrNil()
}

// freeSubnets finds /24 networks to which this host has no route but the default one. They are in
// the range for measuring networks (RFC 2544, appendix C.2.2). It returns the first three numbers
// of each.
func freeSubnets(n int) ([]string, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, problem.New(problem.Failed, "the routes of this host cannot be read").Because(err)
	}
	var free []string
	for i := 0; i < 512 && len(free) < n; i++ {
		three := "198." + strconv.Itoa(18+i/256) + "." + strconv.Itoa(i%256)
		if !isRouted(netip.MustParsePrefix(three+".0/24"), routes) {
			free = append(free, three)
		}
	}
	if len(free) < n {
		return nil, problem.New(problem.Unable, "fewer than %d free networks in 198.18.0.0/15", n).
			Try("ip route shows what uses them")
	}
	return free, nil
}

func isRouted(subnet netip.Prefix, routes []netlink.Route) bool {
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		address, ok := netip.AddrFromSlice(r.Dst.IP.To4())
		bits, _ := r.Dst.Mask.Size()
		if ok && bits > 0 && netip.PrefixFrom(address, bits).Overlaps(subnet) {
			return true
		}
	}
	return false
}
