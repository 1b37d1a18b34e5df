// Package completion completes words of the command line in the shell. The words are nodes and
// selectors, releases, twins, snapshots, sites, and volumes.
package completion

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/control/draft"
	"orrery/internal/control/hosts"
	"orrery/internal/control/layers"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/volumes"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/observe/drill"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
	"orrery/roles"
)

// A Completer returns the words that the shell may offer in a place of the command line. A word may be
// followed by a tab and a description.
type Completer func(request) ([]string, cobra.ShellCompDirective)

// request has the context for completing a word that is partly typed.
type request struct {
	Session *control.Session
	typed   string
}

const (
	withoutFiles = cobra.ShellCompDirectiveNoFileComp
	withFiles    = cobra.ShellCompDirectiveDefault // the shell offers files of this host as well
	withoutSpace = cobra.ShellCompDirectiveNoSpace
)

// Arguments says what the arguments of each verb may be, in order. The last entry also holds for all
// further arguments.
var Arguments = map[string][]Completer{
	"query": {request.selectors}, "graph": {request.selectors}, "plan": {request.selectors}, "up": {request.selectors},
	"down": {request.selectors}, "start": {request.selectors}, "stop": {request.selectors}, "restart": {request.selectors},
	"move":  {request.selectors},
	"renew": {request.selectors}, "stage": {request.selectors}, "switch": {request.selectors},
	"rollback": {request.selectors},
	"status":   {request.selectors}, "exec": {request.selectors}, "logs": {request.selectors, request.units},
	"shell": {request.nodes}, "console": {request.nodes}, "screen": {request.nodes}, "forward": {request.ports},
	"cp":            {request.copyPaths},
	"release show":  {request.releases, request.selectors},
	"release diff":  {request.releases, request.releases, request.selectors},
	"release trust": {request.releases}, "query vars": {request.nodes, request.nothing},
	"role new": {request.nothing}, "role show": {request.shippedRoles, request.nothing},
	"role copy": {request.shippedRoles, request.nothing},
	"forget":    {request.nothing}, "schema": {oneOf("site", "role"), request.nothing},
	"twin create": {request.sites, request.nothing}, "twin destroy": {request.twins},
	"twin status": {request.twins, request.selectors}, "twin exec": {request.twins, request.selectors},
	"twin shell": {request.twins, request.nodes}, "twin forward": {request.twins, request.ports}, "ci": {request.sites},
	"snapshot": {request.selectors}, "snapshot restore": {request.snapshots, request.selectors},
	"snapshot rm":  {request.snapshots},
	"service move": {request.services}, "service test": {request.services},
	"volume mirror": {request.mirroredVolumes}, "volume verify": {request.mirroredVolumes},
	"volume rm": {request.nothing, request.formerNodes}, "secret rotate": {request.secrets},
	"volume adopt": {request.formerNodes, request.nodes, request.nothing},
	"image build":  {request.selectors}, "image verify": {request.layers},
	"backup": {request.selectorsOrFiles}, "backup ls": {request.files}, "backup verify": {request.files},
	"backup prune": {request.directories}, "backup repair": {request.directories},
	"restore": {request.files}, "import": {request.files}, "init": {request.directories},
	"mirror pull": {request.directories},
	"host facts":  {request.hosts}, "host drain": {request.hosts}, "host undrain": {request.hosts},
	"host remove": {request.hosts}, "host add": {request.nothing, oneOf("local")},

	"rehearse":        {request.nothing},
	"rehearse boot":   {request.hosts},
	"rehearse cut":    {request.hosts},
	"rehearse gaps":   {request.nothing},
	"rehearse join":   {request.hosts},
	"rehearse kill":   {request.hosts},
	"rehearse pause":  {request.hosts},
	"rehearse resume": {request.hosts},
	"rehearse slow":   {request.hosts, request.nothing},
	"lab run":         {request.files}, "lab check": {request.files}, "lab compare": {request.files},
	"lab history": {request.files}, "lab report": {request.files}, "lab ls": {request.directories},
	"lab prove": {request.selectors},
}

// flagValues says what the values of flags may be, for all verbs. File names are completed by the shell
// itself.
var flagValues = map[string]Completer{
	"site": request.sites, "twin": request.twins, "release": request.releases, "only": request.selectors,
	"host": request.nodes, "without": request.hosts, "to": request.hosts, "node": request.nodes, "layer": request.layers,
	"example":    func(request) ([]string, cobra.ShellCompDirective) { return draft.Examples(), withoutFiles },
	"confirm-by": oneOf("checks", "hand"), "owner": request.nothing, "user": request.nothing,
	"fault":          oneOf(drill.Faults...),
	"scale":          oneOf("cpus=", "memory="),
	"yes-production": request.nothing, "yes-volumes": request.nothing, "yes-restore": request.nothing,
	"yes-replace": request.nothing, "yes-forget": request.nothing, "yes-moves": request.nothing,
}

// IsRequest reports whether a command line is a completion request of the shell.
func IsRequest(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == cobra.ShellCompRequestCmd || arg == cobra.ShellCompNoDescRequestCmd
	})
}

// Add makes the shell complete the arguments and flags of a verb and its subcommands, for a
// session.
func Add(c *cobra.Command, a *control.Session) {
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return complete(a, c, verb, args, typed)
	}
	for name, gives := range flagValues {
		if c.LocalNonPersistentFlags().Lookup(name) == nil && (c.HasParent() || c.PersistentFlags().Lookup(name) == nil) {
			continue
		}
		_ = c.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string,
			cobra.ShellCompDirective) {
			return gives(request{a, typed})
		})
	}
	if verb == "lab run" || verb == "release trust" { // their --host is a host, not a node
		_ = c.RegisterFlagCompletionFunc("host", func(_ *cobra.Command, _ []string, typed string) ([]string,
			cobra.ShellCompDirective) {
			return request{a, typed}.hosts()
		})
	}
	if verb == "service move" { // its --to is a node
		_ = c.RegisterFlagCompletionFunc("to", func(_ *cobra.Command, _ []string, typed string) ([]string,
			cobra.ShellCompDirective) {
			return request{a, typed}.nodes()
		})
	}
	if down := c.Flags().Lookup("name"); verb == "down" && down != nil {
		_ = c.RegisterFlagCompletionFunc("name", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return request{Session: a}.siteNames(), withoutFiles
		})
	}
	for _, inner := range c.Commands() {
		Add(inner, a)
	}
}

// complete returns the words for the next argument of a verb.
func complete(a *control.Session, c *cobra.Command, verb string, args []string, typed string) ([]string,
	cobra.ShellCompDirective) {
	of := Arguments[verb]
	if strings.Contains(a.Command, " -- ") { // cobra does not tell whether it was typed
		return nil, withFiles // complete a command
	}
	if c.DisableFlagParsing { // twin status and similar verbs
		var flags []string
		if flags, args = SharedFlags(args); len(args) > 0 {
			a.Twin = args[0]
		}
		if i := slices.Index(flags, "-C"); i >= 0 && i+1 < len(flags) {
			a.SiteDir = flags[i+1]
		}
	}
	usage, _, _ := strings.Cut(c.Use, "-- ")
	switch at := len(args); {
	case at < len(of):
		return of[at](request{a, typed})
	case len(of) > 0 && strings.Contains(usage, "..."):
		return of[len(of)-1](request{a, typed})
	}
	return nil, withoutFiles
}

func (request) nothing() ([]string, cobra.ShellCompDirective) { return nil, withoutFiles }

func (request) files() ([]string, cobra.ShellCompDirective) { return nil, withFiles }

func (request) directories() ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func oneOf(all ...string) Completer {
	return func(request) ([]string, cobra.ShellCompDirective) { return all, withoutFiles }
}

// shippedRoles returns the roles that ship with Orrery.
func (request) shippedRoles() ([]string, cobra.ShellCompDirective) {
	return roles.Names(), withoutFiles
}

// hosts returns the hosts of the site.
func (a request) hosts() ([]string, cobra.ShellCompDirective) {
	return hosts.Names(a.site()), withoutFiles
}

// site returns the session's site. If it cannot be read, site returns the recorded one or an empty
// one, because completion never reports errors.
func (a request) site() *site.Site {
	s, err := a.Session.Load()
	if err == nil {
		return s
	}
	if s, ok := control.Recorded(a.Session); ok {
		return s
	}
	return &site.Site{}
}

func (a request) services() ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, v := range a.site().Services {
		names = append(names, v.Name)
	}
	return names, withoutFiles
}

func (a request) nodes() ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, n := range a.site().Nodes {
		names = append(names, n.Name)
	}
	return names, withoutFiles
}

// selectors returns the names of nodes, and the other selectors of the site.
func (a request) selectors() ([]string, cobra.ShellCompDirective) {
	s := a.site()
	some, _ := a.nodes()
	add := func(property string, names ...string) {
		for _, name := range names {
			some = append(some, property+"="+name)
		}
	}
	for _, g := range s.Groups {
		add("group", g.Name)
	}
	for _, r := range s.Roles {
		add("role", r.Name)
	}
	for _, n := range s.Networks {
		add("network", n.Name)
	}
	for _, h := range s.Hosts {
		add("host", h.Name)
	}
	return append(some, "all"), withoutFiles
}

func (a request) selectorsOrFiles() ([]string, cobra.ShellCompDirective) {
	some, _ := a.selectors()
	return some, withFiles
}

// units returns the services of the site's roles.
func (a request) units() ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, r := range a.site().Roles {
		all = append(all, r.Services...)
	}
	slices.Sort(all)
	return slices.Compact(all), withoutFiles
}

// ports returns the nodes, each with a colon for the port.
func (a request) ports() ([]string, cobra.ShellCompDirective) {
	names, _ := a.nodes()
	for i := range names {
		names[i] += ":"
	}
	return names, withoutFiles | withoutSpace
}

// copyPaths returns the nodes or, after a node and a colon, paths in that node. Other paths are on
// this host.
func (a request) copyPaths() ([]string, cobra.ShellCompDirective) {
	name, at, inNode := strings.Cut(a.typed, ":")
	if !inNode || strings.Contains(name, "/") {
		some, _ := a.ports()
		return some, withFiles | withoutSpace
	}
	var some []string
	for _, found := range a.pathsIn(name, at) {
		some = append(some, name+":"+found)
	}
	return some, withoutFiles | withoutSpace
}

// pathsIn returns the paths in a node that have a prefix. Directories end in a slash. If the node
// does not answer soon, pathsIn returns none.
func (a request) pathsIn(name, begin string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s := a.site()
	if _, err := control.DeclaredNode(s, name); err != nil || a.Session.Allowed() != nil {
		return nil
	}
	in, err := way.Runner(ctx, a.Session, s, name)
	if err != nil {
		return nil
	}
	return pathsIn(ctx, in, begin)
}

func pathsIn(ctx context.Context, in host.Runner, begin string) []string {
	if !strings.HasPrefix(begin, "/") {
		begin = "/root/" + begin
	}
	dir, base := path.Split(begin)
	const listScript = `cd -- "$1" && ls -1Ap | head -n 2000`
	out, err := host.Output(ctx, in, host.Command{Args: []string{"/bin/sh", "-c", listScript, "complete", dir}}, 1<<20)
	if err != nil {
		return nil
	}
	var all []string
	for line := range bytes.Lines(out) {
		found := strings.TrimSuffix(string(line), "\n")
		if strings.HasPrefix(found, base) && isPlain(found) {
			all = append(all, dir+found)
		}
	}
	return all
}

// isPlain reports whether a name has only characters without a special meaning for shells and
// terminals. Nodes choose the names of their files.
func isPlain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-+@%,=/", r)
	})
}

// releases returns the declared and the stored releases.
func (a request) releases() ([]string, cobra.ShellCompDirective) {
	s := a.site()
	if s.Name == "" {
		return nil, withoutFiles
	}
	var some []string
	all, err := releases.List(context.Background(), a.Session, s)
	if err != nil { // listing declared releases needs no rights
		for _, r := range s.Releases {
			some = append(some, strconv.Itoa(r.Number))
		}
		return some, withoutFiles
	}
	for _, i := range all {
		if i.Number > 0 {
			some = append(some, strconv.Itoa(i.Number)+"\t"+strings.TrimSpace(i.State()+" "+i.Notes))
		}
	}
	return some, withoutFiles
}

// twins returns the twins of the session's site, or all twins if there is no site.
func (a request) twins() ([]string, cobra.ShellCompDirective) {
	original := *a.Session
	original.Twin = ""
	of := request{Session: &original}.site().Name
	var some []string
	for _, r := range a.Session.Register().Twins() {
		if of == "" || r.Site == of {
			some = append(some, r.Options.Name+"\tof "+r.Site+", owner "+r.Options.Owner)
		}
	}
	return some, withoutFiles
}

// sites returns the names of the sites that are up. The shell also offers directories.
func (a request) sites() ([]string, cobra.ShellCompDirective) {
	var some []string
	for _, m := range a.Session.Register().SitesUp() {
		if m.Twin == "" {
			some = append(some, m.Site+"\t"+m.Dir)
		}
	}
	return some, withFiles
}

// siteNames returns the names of the sites that this host knows.
func (a request) siteNames() []string {
	var some []string
	rows, _ := sites.All(context.Background(), a.Session)
	for _, r := range rows {
		if r.Twin == "" {
			some = append(some, r.Site+"\t"+r.Text()+", "+cmp.Or(r.Dir, "-"))
		}
	}
	return some
}

func (a request) snapshots() ([]string, cobra.ShellCompDirective) {
	var some []string
	s := a.site()
	if s == nil {
		return nil, withoutFiles
	}
	near := *a.Session
	near.Without = hosts.RemoteNames(s) // completion does not log in to other hosts
	all, _ := snapshots.List(context.Background(), &near, s)
	for _, each := range all {
		some = append(some, each.ID+"\t"+humanize.Plural(len(each.Nodes), "node")+", "+
			humanize.Plural(len(each.Volumes), "volume"))
	}
	return some, withoutFiles
}

// secrets returns the secrets of the site.
func (a request) secrets() ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, x := range a.site().Secrets {
		names = append(names, x.Name)
	}
	return names, withoutFiles
}

// mirroredVolumes returns the volumes that have a mirror.
func (a request) mirroredVolumes() ([]string, cobra.ShellCompDirective) {
	return volumes.WithMirror(a.Session, a.site()), withoutFiles
}

// formerNodes returns the nodes that are no longer declared but still have data.
func (a request) formerNodes() ([]string, cobra.ShellCompDirective) {
	return volumes.FormerNodes(a.Session, a.site()), withoutFiles
}

func (a request) layers() ([]string, cobra.ShellCompDirective) {
	var some []string
	all, _ := layers.List(context.Background(), a.Session)
	for _, l := range all {
		some = append(some, l.Digest+"\t"+l.Title)
	}
	return some, withoutFiles
}

// SharedFlags splits the common flags before a verb from the rest of the arguments.
func SharedFlags(args []string) (flags, rest []string) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return args[:i:i], args[i:]
		}
		if args[i] == "-C" || args[i] == "--site" || args[i] == "--twin" {
			i++ // its value
		}
	}
	return args, nil
}
